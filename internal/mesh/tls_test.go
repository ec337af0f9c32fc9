// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

func withTLS(n *mesh.VirtualNode, mode mesh.TLSMode) *mesh.VirtualNode {
	n.Spec.Listeners[0].TLS = &mesh.ListenerTLS{Mode: mode, Certificate: mesh.TLSCertificate{SDS: &mesh.SDSSecret{SecretName: "x"}}}
	return n
}

func policy(enforce *bool, ports ...int32) *mesh.ClientPolicy {
	return &mesh.ClientPolicy{TLS: &mesh.ClientPolicyTLS{Enforce: enforce, Ports: ports, Validation: mesh.TLSValidation{Trust: mesh.TLSTrust{SDS: &mesh.SDSSecret{SecretName: "ca"}}}}}
}

// byDefault and forBackend give a client's policy its place.
func byDefault(n *mesh.VirtualNode, p *mesh.ClientPolicy) *mesh.VirtualNode {
	n.Spec.BackendDefaults = &mesh.BackendDefaults{ClientPolicy: p}
	return n
}

func forBackend(n *mesh.VirtualNode, index int, p *mesh.ClientPolicy) *mesh.VirtualNode {
	n.Spec.Backends[index].VirtualService.ClientPolicy = p
	return n
}

func TestWhatIsNotSupportedYetStaysOnTheSafeSide(t *testing.T) {
	t.Parallel()
	routed := func(n *mesh.VirtualNode) model {
		return withRoute([]string{"http/80"}, httpRoute("r", "x", "/", "a=50", "b=50")).with(n)
	}
	provided := newModel(aMesh(), aClient("c", "s", "u"), aService("s", byNode("a")), aService("u", byNode("b")), aNode("a", "http/80", "http/81"), aNode("b", "http/80"))
	const backend = "VirtualNode/c spec.backends[0].virtualService.clientPolicy.tls"
	const fallback = "VirtualNode/c spec.backendDefaults.clientPolicy.tls"
	for name, c := range map[string]struct {
		model    model
		answers  []string
		nodes    []string
		findings []string
	}{
		"a target whose TLS is STRICT gets no traffic": {
			routed(withTLS(aNode("a", "http/8080"), mesh.TLSStrict)),
			[]string{"s:80 x -> b:8081=50"},
			[]string{"b:8081"},
			[]string{"error NotYetSupported VirtualNode/a spec.listeners[0].tls.mode"},
		},
		"a mode that nobody knows is taken for STRICT": {
			routed(withTLS(aNode("a", "http/8080"), "LENIENT")),
			[]string{"s:80 x -> b:8081=50"},
			[]string{"b:8081"},
			[]string{"error NotYetSupported VirtualNode/a spec.listeners[0].tls.mode"},
		},
		"a target whose TLS is PERMISSIVE is called in plaintext": {
			routed(withTLS(aNode("a", "http/8080"), mesh.TLSPermissive)),
			[]string{"s:80 x -> a:8080=50 b:8081=50"},
			[]string{"a:8080", "b:8081"},
			[]string{"error NotYetSupported VirtualNode/a spec.listeners[0].tls.mode"},
		},
		"a target whose TLS is DISABLED is a target as any other": {
			routed(withTLS(aNode("a", "http/8080"), mesh.TLSDisabled)),
			[]string{"s:80 x -> a:8080=50 b:8081=50"},
			[]string{"a:8080", "b:8081"},
			nil,
		},
		"a provider's port whose TLS is STRICT is known and answers nothing": {
			provided.with(withTLS(aNode("a", "http/80", "http/81"), mesh.TLSStrict)),
			[]string{"s:80 -", "s:81 s -> a:81=100", "u:80 u -> b:80=100"},
			[]string{"a:81", "b:80"},
			[]string{"error NotYetSupported VirtualNode/a spec.listeners[0].tls.mode"},
		},
		"a backend's policy that is enforced by default empties that service alone": {
			provided.with(forBackend(aClient("c", "s", "u"), 0, policy(nil))),
			[]string{"s:80 -", "s:81 -", "u:80 u -> b:80=100"},
			[]string{"b:80"},
			[]string{"error NotYetSupported " + backend},
		},
		"a policy for one port lets the other port be": {
			provided.with(forBackend(aClient("c", "s", "u"), 0, policy(new(true), 81))),
			[]string{"s:80 s -> a:80=100", "s:81 s ->", "u:80 u -> b:80=100"},
			[]string{"a:80", "b:80"},
			[]string{"error NotYetSupported " + backend},
		},
		"a policy for a port that no target has does not apply": {
			provided.with(forBackend(aClient("c", "s", "u"), 0, policy(new(true), 8443))),
			[]string{"s:80 s -> a:80=100", "s:81 s -> a:81=100", "u:80 u -> b:80=100"},
			[]string{"a:80", "a:81", "b:80"},
			nil,
		},
		"a policy by default empties all services": {
			provided.with(byDefault(aClient("c", "s", "u"), policy(nil))),
			[]string{"s:80 -", "s:81 -", "u:80 -"},
			nil,
			[]string{"error NotYetSupported " + fallback, "error NotYetSupported " + fallback},
		},
		"a backend's own empty policy replaces the default whole": {
			provided.with(forBackend(byDefault(aClient("c", "s", "u"), policy(nil)), 0, &mesh.ClientPolicy{})),
			[]string{"s:80 s -> a:80=100", "s:81 s -> a:81=100", "u:80 -"},
			[]string{"a:80", "a:81"},
			[]string{"error NotYetSupported " + fallback},
		},
		"a policy that is not enforced allows plaintext": {
			provided.with(forBackend(aClient("c", "s", "u"), 0, policy(new(false)))),
			[]string{"s:80 s -> a:80=100", "s:81 s -> a:81=100", "u:80 u -> b:80=100"},
			[]string{"a:80", "a:81", "b:80"},
			[]string{"error NotYetSupported " + backend},
		},
		"a policy that is not enforced does not reach a STRICT target": {
			provided.with(forBackend(aClient("c", "s", "u"), 0, policy(new(false))), withTLS(aNode("a", "http/80"), mesh.TLSStrict)),
			[]string{"s:80 -", "u:80 u -> b:80=100"},
			[]string{"b:80"},
			[]string{"error NotYetSupported " + backend, "error NotYetSupported VirtualNode/a spec.listeners[0].tls.mode"},
		},
		"a backend that must be called over TLS is refused at its Service's address where nothing answers": {
			newModel(aMesh(), byDefault(aClient("c", "gone.prod", "s.prod", "u.prod"), policy(nil)), aService("s.prod", byNode("gone")), aService("u.prod", nil),
				aKubernetesService("gone", "10.0.0.1", 81), aKubernetesService("s", "10.0.0.2", 80), aKubernetesService("u", "", 80)),
			[]string{"gone.prod:81 -", "s.prod:80 -"},
			nil,
			[]string{
				"error RefNotFound VirtualNode/c spec.backends[0].virtualService.virtualServiceName", "error RefNotFound VirtualService/s.prod spec.provider.virtualNode.virtualNodeName",
				"warning NoTraffic VirtualService/u.prod spec.provider", "error NotYetSupported " + fallback, "error NotYetSupported " + fallback,
			},
		},
		"of two policies for one service the stricter holds": {
			provided.with(forBackend(aClient("c", "s", "s"), 1, policy(nil))),
			[]string{"s:80 -", "s:81 -"},
			nil,
			[]string{"warning Duplicate VirtualNode/c spec.backends[1].virtualService.virtualServiceName", "error NotYetSupported VirtualNode/c spec.backends[1].virtualService.clientPolicy.tls"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, findings := c.model.view(t, "c")
			if diff := cmp.Diff(c.answers, answers(v), equateEmpty); diff != "" {
				t.Errorf("routes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.nodes, nodeNames(v), equateEmpty); diff != "" {
				t.Errorf("nodes (-want +got):\n%s", diff)
			}
			wantFindings(t, findings, c.findings...)
		})
	}
}

func TestAClientPolicyOfItsOwnIsMarked(t *testing.T) {
	t.Parallel()
	lax := policy(new(false))
	for name, c := range map[string]struct {
		fallback, own *mesh.ClientPolicy
		marked        bool
	}{
		"no policy at all":                        {nil, nil, false},
		"the default alone":                       {lax, nil, false},
		"a policy without a default":              {nil, lax, true},
		"an empty policy without a default":       {nil, &mesh.ClientPolicy{}, false},
		"an empty policy in place of the default": {lax, &mesh.ClientPolicy{}, true},
		"the same policy as the default":          {lax, policy(new(false)), false},
		"the default's policy for one port":       {lax, policy(new(false), 80), true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			client := forBackend(byDefault(aClient("c", "s"), c.fallback), 0, c.own)
			v, _ := newModel(aMesh(), client, aService("s", byNode("a")), aNode("a", "http/80")).view(t, "c")
			if v.Services[0].OwnPolicy != c.marked {
				t.Errorf("OwnPolicy is %v, want %v", v.Services[0].OwnPolicy, c.marked)
			}
		})
	}
}

func TestOwnListeners(t *testing.T) {
	t.Parallel()
	n := aNode("a", "http/80", "http2/81", "tcp/82", "http/80", "http/70000", "smtp/25", "grpc/83")
	n.Spec.Listeners[0].TLS = &mesh.ListenerTLS{Mode: mesh.TLSStrict}
	n.Spec.Listeners[1].TLS = &mesh.ListenerTLS{Mode: mesh.TLSPermissive}
	n.Spec.Listeners[2].TLS = &mesh.ListenerTLS{Mode: mesh.TLSDisabled}
	n.Spec.Listeners[6].HealthCheck = &mesh.HealthCheckPolicy{Protocol: mesh.ProtocolGRPC}
	v, findings := newModel(aMesh(), n).view(t, "a")
	var got []int32
	for _, l := range v.Listeners {
		got = append(got, l.PortMapping.Port)
	}
	if diff := cmp.Diff([]int32{81, 82, 83}, got); diff != "" {
		t.Errorf("listeners (-want +got):\n%s", diff)
	}
	if port := v.Listeners[2].HealthCheck.Port; port != 83 {
		t.Errorf("a health check without a port is for port %d, want the listener's, 83", port)
	}
	if n.Spec.Listeners[6].HealthCheck.Port != 0 {
		t.Error("the model's own object was changed")
	}
	wantFindings(t, findings,
		"error NotYetSupported VirtualNode/a spec.listeners[0].tls.mode", "error NotYetSupported VirtualNode/a spec.listeners[1].tls.mode",
		"error Duplicate VirtualNode/a spec.listeners[3].portMapping.port", "error Invalid VirtualNode/a spec.listeners[4].portMapping", "error Invalid VirtualNode/a spec.listeners[5].portMapping",
	)
}

func TestTimeoutsOfANodeAsProviderAreItsListeners(t *testing.T) {
	t.Parallel()
	timeout := &mesh.HTTPTimeout{PerRequest: &mesh.Duration{Value: 90, Unit: mesh.Seconds}, Idle: &mesh.Duration{Value: 0, Unit: mesh.Seconds}}
	n := aNode("a", "http/80", "http2/81", "grpc/82", "tcp/83", "http/84")
	n.Spec.Listeners[0].Timeout = &mesh.ListenerTimeout{HTTP: timeout}
	n.Spec.Listeners[1].Timeout = &mesh.ListenerTimeout{HTTP2: timeout}
	n.Spec.Listeners[2].Timeout = &mesh.ListenerTimeout{GRPC: timeout}
	n.Spec.Listeners[3].Timeout = &mesh.ListenerTimeout{TCP: &mesh.TCPTimeout{Idle: timeout.PerRequest}}
	v, _ := newModel(aMesh(), aClient("c", "s"), aService("s", byNode("a")), n).view(t, "c")
	ports := v.Services[0].Ports
	for _, p := range ports[:3] {
		r := p.Routes[0]
		if r.DefaultTimeout != timeout.PerRequest || r.Timeout == nil || r.Timeout.PerRequest != nil || r.Timeout.Idle != timeout.Idle {
			t.Errorf("port %d: default %v, own %v; want the listener's 90 s as default and its idle", p.Port, r.DefaultTimeout, r.Timeout)
		}
	}
	if r := ports[3].Routes[0]; !r.TCP || r.TCPIdle != timeout.PerRequest || r.DefaultTimeout != nil {
		t.Errorf("tcp: %+v; want the listener's idle and no limit of a request", r)
	}
	if r := ports[4].Routes[0]; r.DefaultTimeout.Span() != mesh.DefaultRequestTimeout || r.Timeout != nil {
		t.Errorf("a listener without timeout gives default %v and own %v, want the 15 s default", r.DefaultTimeout, r.Timeout)
	}
}
