// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cni

import (
	"maps"
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tulle-mesh/tulle/internal/agent/redirect"
)

// injected are the annotations of a pod that the injector has left to the plugin.
func injected(change map[string]string) map[string]string {
	a := map[string]string{
		"appmesh.k8s.aws/sidecarInjectorWebhook": "enabled", "appmesh.k8s.aws/ports": "8080,9090", "appmesh.k8s.aws/egressIgnoredIPs": "169.254.169.254,fd00::/8",
		"appmesh.k8s.aws/egressIgnoredPorts": "22", "appmesh.k8s.aws/proxyEgressPort": "15001", "appmesh.k8s.aws/proxyIngressPort": "15000",
		"appmesh.k8s.aws/ignoredUID": "1337", "kubernetes.io/config.source": "api",
	}
	for name, value := range change {
		if value == "" {
			delete(a, prefix+name)
		} else {
			a[prefix+name] = value
		}
	}
	return maps.Clone(a)
}

func TestAnnotationsSayWhatIsCaptured(t *testing.T) {
	t.Parallel()
	whole := redirect.Config{
		User: new(uint32(1337)), IngressPort: 15000, EgressPort: 15001, AppPorts: []uint16{8080, 9090}, IgnoredPorts: []uint16{22}, IPv6: true,
		IgnoredIPs: []netip.Prefix{netip.MustParsePrefix("169.254.169.254/32"), netip.MustParsePrefix("fd00::/8")},
	}
	changed := func(f func(*redirect.Config)) *redirect.Config {
		c := whole
		f(&c)
		return &c
	}
	for name, c := range map[string]struct {
		annotations map[string]string
		want        *redirect.Config
		fault       string
	}{
		"a pod without annotations is left alone":                       {annotations: nil},
		"a pod that may not be injected is left alone":                  {annotations: injected(map[string]string{"sidecarInjectorWebhook": "disabled"})},
		"a pod that says nothing of injection is left alone":            {annotations: injected(map[string]string{"sidecarInjectorWebhook": ""})},
		"a pod with an init container for the redirect is left alone":   {annotations: map[string]string{prefix + "sidecarInjectorWebhook": "enabled", prefix + "ports": "80"}},
		"what the injector writes is captured":                          {annotations: injected(nil), want: &whole},
		"ipv6 can be left out":                                          {annotations: injected(map[string]string{"ipv6": "disabled"}), want: changed(func(c *redirect.Config) { c.IPv6 = false })},
		"a group in place of a user":                                    {annotations: injected(map[string]string{"ignoredUID": "", "ignoredGID": "5"}), want: changed(func(c *redirect.Config) { c.User, c.Group = nil, new(uint32(5)) })},
		"a pod that nobody calls needs no ingress port":                 {annotations: injected(map[string]string{"ports": "", "proxyIngressPort": ""}), want: changed(func(c *redirect.Config) { c.AppPorts, c.IngressPort = nil, 0 })},
		"what only the injector writes does not stand without the rest": {annotations: injected(map[string]string{"proxyEgressPort": ""}), fault: "annotation appmesh.k8s.aws/proxyIngressPort is there without appmesh.k8s.aws/proxyEgressPort"},
		"an egress port that is no number":                              {annotations: injected(map[string]string{"proxyEgressPort": "http"}), fault: `annotation appmesh.k8s.aws/proxyEgressPort: "http" is not a port`},
		"an ingress port beyond all ports":                              {annotations: injected(map[string]string{"proxyIngressPort": "65536"}), fault: `annotation appmesh.k8s.aws/proxyIngressPort: "65536" is not a port`},
		"application ports with a name among them":                      {annotations: injected(map[string]string{"ports": "80,web"}), fault: `annotation appmesh.k8s.aws/ports: "web" is not a port`},
		"ignored ports with a zero among them":                          {annotations: injected(map[string]string{"egressIgnoredPorts": "0"}), fault: `annotation appmesh.k8s.aws/egressIgnoredPorts: "0" is not a port`},
		"an ignored address that would be an option of iptables":        {annotations: injected(map[string]string{"egressIgnoredIPs": "-j ACCEPT"}), fault: `annotation appmesh.k8s.aws/egressIgnoredIPs: "-j ACCEPT" is neither an IP address nor a network`},
		"a user with a name":                                            {annotations: injected(map[string]string{"ignoredUID": "envoy"}), fault: `annotation appmesh.k8s.aws/ignoredUID: "envoy" is not the number of a user or group`},
		"a group below zero":                                            {annotations: injected(map[string]string{"ignoredGID": "-1"}), fault: `annotation appmesh.k8s.aws/ignoredGID: "-1" is not the number`},
		"all faults at once":                                            {annotations: injected(map[string]string{"ignoredUID": "x", "ports": "y"}), fault: "annotation appmesh.k8s.aws/ignoredUID: \"x\" is not the number of a user or group\nannotation appmesh.k8s.aws/ports"},
		"nobody whose connections are left alone":                       {annotations: injected(map[string]string{"ignoredUID": ""}), fault: "annotations appmesh.k8s.aws/ignoredUID and appmesh.k8s.aws/ignoredGID are both missing"},
		"application ports that lead nowhere":                           {annotations: injected(map[string]string{"proxyIngressPort": ""}), fault: "annotation appmesh.k8s.aws/ports is there without appmesh.k8s.aws/proxyIngressPort"},
		"one port for both directions":                                  {annotations: injected(map[string]string{"proxyIngressPort": "15001"}), fault: "are both 15001"},
		"an application on Envoy's port":                                {annotations: injected(map[string]string{"ports": "15000"}), fault: "annotation appmesh.k8s.aws/ports: 15000 is Envoy's own port"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := captured(c.annotations)
			if c.fault != "" {
				if err == nil || !strings.Contains(err.Error(), c.fault) {
					t.Fatalf("want an error with %q, got %v", c.fault, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmpopts.EquateEmpty()); diff != "" {
				t.Error(diff)
			}
			if got != nil {
				if err := got.Validate(); err != nil {
					t.Errorf("what is read is not valid: %v", err)
				}
			}
		})
	}
}
