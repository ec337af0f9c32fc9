// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tulle-mesh/tulle/internal/agent/redirect"
)

// proxyUser is the user that the proxy runs as, whose own connections are not captured.
const proxyUser = 1337

// Envoy's ports for captured connections.
const (
	ingressPort = 15000
	egressPort  = 15001
)

// capture is which connections are brought to the proxy.
type capture struct {
	ports, ignoredIPs, ignoredPorts string
	ipv6                            bool
}

func (s *subject) capture() (capture, error) {
	var listeners []string
	for _, port := range s.ports {
		if text := strconv.FormatInt(port, 10); !slices.Contains(listeners, text) {
			listeners = append(listeners, text)
		}
	}
	c := capture{
		ports:        s.annotated(annotationPorts, strings.Join(listeners, ",")),
		ignoredIPs:   s.annotated(annotationIgnoredIPs, s.settings.IgnoredIPs),
		ignoredPorts: s.annotated(annotationIgnoredPorts, "22"),
		ipv6:         s.pod.Annotations[annotationIPv6] != "disabled",
	}
	if text, ok := s.pod.Annotations[annotationIPv6]; ok && c.ipv6 && text != "enabled" {
		s.warn("the annotation %s is %q; only disabled means something", annotationIPv6, text)
	}
	for name, text := range map[string]string{annotationPorts: c.ports, annotationIgnoredPorts: c.ignoredPorts} {
		if _, err := redirect.ParsePorts(text); err != nil {
			return c, s.wrong(name, "%v", err)
		}
	}
	if _, err := redirect.ParseIPs(c.ignoredIPs); err != nil {
		return c, s.wrong(annotationIgnoredIPs, "%v", err)
	}
	return c, nil
}

// byCNI says that the CNI plugin redirects the pod's traffic, and no container of the pod does.
func (s *subject) byCNI() bool {
	if text, ok := s.pod.Annotations[annotationCNI]; ok {
		return text == "enabled"
	}
	return s.settings.CNI || s.pod.Labels[labelFargate] != ""
}

// redirect has the pod's traffic brought to the proxy: by a container that runs first, or by the CNI plugin.
func (s *subject) redirect() error {
	c, err := s.capture()
	if err != nil || index(s.pod.Spec.InitContainers, containerInit) >= 0 {
		return err
	}
	if s.byCNI() {
		return s.annotate(map[string]string{
			annotationPorts: c.ports, annotationIgnoredIPs: c.ignoredIPs, annotationIgnoredPorts: c.ignoredPorts,
			annotationIgnoredUID: strconv.Itoa(proxyUser), annotationEgressPort: strconv.Itoa(egressPort), annotationIngressPort: strconv.Itoa(ingressPort),
			annotationInject: "enabled",
		})
	}
	resources, err := s.resources(false)
	if err != nil {
		return err
	}
	image := s.settings.InitImage
	if image == "" {
		image = s.settings.Image
	}
	container := corev1.Container{
		Name: containerInit, Image: image, Args: []string{"redirect"}, Resources: resources,
		Env: []corev1.EnvVar{
			{Name: "APPMESH_APP_PORTS", Value: c.ports},
			{Name: "APPMESH_EGRESS_IGNORED_IP", Value: c.ignoredIPs},
			{Name: "APPMESH_EGRESS_IGNORED_PORTS", Value: c.ignoredPorts},
			{Name: "APPMESH_ENABLE_IPV6", Value: digit(c.ipv6)},
			{Name: "APPMESH_ENVOY_EGRESS_PORT", Value: strconv.Itoa(egressPort)},
			{Name: "APPMESH_ENVOY_INGRESS_PORT", Value: strconv.Itoa(ingressPort)},
			{Name: "APPMESH_IGNORE_UID", Value: strconv.Itoa(proxyUser)},
			{Name: "APPMESH_START_ENABLED", Value: "1"},
		},
		// Rules are written by root alone, also in a pod whose other containers must not be root.
		SecurityContext: &corev1.SecurityContext{
			RunAsUser: new(int64(0)), RunAsGroup: new(int64(0)), RunAsNonRoot: new(false),
			AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
			Capabilities: &corev1.Capabilities{Add: []corev1.Capability{"NET_ADMIN", "NET_RAW"}, Drop: []corev1.Capability{"ALL"}},
		},
	}
	// A native sidecar comes right behind, so that the pod's own init containers have network through it. Without one they keep the network by going first.
	place := last
	if s.isNative() {
		place = 0
	}
	return s.doc.insert(place, container, "spec", "initContainers")
}

// annotate writes annotations of the pod that differ, in order.
func (s *subject) annotate(values map[string]string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if text, ok := s.pod.Annotations[name]; ok && text == values[name] {
			continue
		}
		if err := s.doc.set(values[name], "metadata", "annotations", name); err != nil {
			return err
		}
	}
	return nil
}

func digit(on bool) string {
	if on {
		return "1"
	}
	return "0"
}
