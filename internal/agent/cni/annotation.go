// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cni

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tulle-mesh/tulle/internal/agent/redirect"
)

// prefix is that of the pod annotations which the injector writes for this plugin, by the names that App Mesh's had.
const prefix = "appmesh.k8s.aws/"

// The annotations that only the injector writes, and only for this plugin. The first is what says that a pod's traffic is to be captured.
const (
	egressPortName  = "proxyEgressPort"
	ingressPortName = "proxyIngressPort"
	userName        = "ignoredUID"
	groupName       = "ignoredGID"
)

// captured reads what a pod's annotations ask for; nil for a pod that is not captured here. Faults name each annotation and its value, and are gathered.
func captured(annotations map[string]string) (*redirect.Config, error) {
	get := func(name string) string { return strings.TrimSpace(annotations[prefix+name]) }
	if !strings.EqualFold(get("sidecarInjectorWebhook"), "enabled") {
		return nil, nil //nolint:nilnil // none is a value here
	}
	if get(egressPortName) == "" {
		for _, name := range []string{ingressPortName, userName, groupName} {
			if get(name) != "" {
				return nil, fmt.Errorf("annotation %s%s is there without %s%s: leave both to the injector (annotation %sappmeshCNI: enabled)", prefix, name, prefix, egressPortName, prefix)
			}
		}
		return nil, nil //nolint:nilnil // the pod has an init container of its own for this, or is a gateway
	}
	var faults []error
	fault := func(name string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("annotation %s%s: %w", prefix, name, err))
		}
	}
	port := func(name string) uint16 {
		text := get(name)
		if text == "" {
			return 0
		}
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			fault(name, fmt.Errorf("%q is not a port: want a number from 1 to 65535", text))
		}
		return uint16(n)
	}
	c := redirect.Config{EgressPort: port(egressPortName), IngressPort: port(ingressPortName), IPv6: !strings.EqualFold(get("ipv6"), "disabled")}
	var err error
	c.User, err = redirect.ParseID(get(userName))
	fault(userName, err)
	c.Group, err = redirect.ParseID(get(groupName))
	fault(groupName, err)
	c.AppPorts, err = redirect.ParsePorts(get("ports"))
	fault("ports", err)
	c.IgnoredPorts, err = redirect.ParsePorts(get("egressIgnoredPorts"))
	fault("egressIgnoredPorts", err)
	c.IgnoredIPs, err = redirect.ParseIPs(get("egressIgnoredIPs"))
	fault("egressIgnoredIPs", err)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return &c, together(&c)
}

// together says in the annotations' names what redirect says in those of its flags.
func together(c *redirect.Config) error {
	switch {
	case c.User == nil && c.Group == nil:
		return fmt.Errorf("annotations %s%s and %s%s are both missing: without one Envoy's own connections would be sent back to it", prefix, userName, prefix, groupName)
	case len(c.AppPorts) > 0 && c.IngressPort == 0:
		return fmt.Errorf("annotation %sports is there without %s%s: inbound connections would have nowhere to go", prefix, prefix, ingressPortName)
	case c.IngressPort == c.EgressPort:
		return fmt.Errorf("annotations %s%s and %s%s are both %d: Envoy needs two ports", prefix, ingressPortName, prefix, egressPortName, c.EgressPort)
	}
	for _, port := range c.AppPorts {
		if port == c.IngressPort || port == c.EgressPort {
			return fmt.Errorf("annotation %sports: %d is Envoy's own port: take another for the application", prefix, port)
		}
	}
	return nil
}
