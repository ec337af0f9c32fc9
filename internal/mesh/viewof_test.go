// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// djApp is the DJ app: dj calls metal and jazz, each spread over two versions.
func djApp() model {
	return newModel(
		aMesh(),
		aClient("dj", "metal.prod.svc.cluster.local", "jazz.prod.svc.cluster.local"),
		aService("metal.prod.svc.cluster.local", byRouter("metal-router")), aService("jazz.prod.svc.cluster.local", byRouter("jazz-router")),
		aRouter("metal-router", "http/9080"), aRouter("jazz-router", "http/9080"),
		httpRoute("metal-router", "metal-route", "/", "metal-v1=50", "metal-v2=50"), httpRoute("jazz-router", "jazz-route", "/", "jazz-v1=90", "jazz-v2=10"),
		aNode("metal-v1", "http/9080"), aNode("metal-v2", "http/9080"), aNode("jazz-v1", "http/9080"), aNode("jazz-v2", "http/9080"), aNode("other", "http/9080"),
	)
}

// answers writes a View's routes as "service:port route -> targets", in order of precedence.
func answers(v *mesh.View) []string {
	var list []string
	for _, s := range v.Services {
		for _, p := range s.Ports {
			head := s.Name + ":" + portText(p.Port)
			if len(p.Routes) == 0 {
				list = append(list, head+" -")
			}
			for _, r := range p.Routes {
				line := head + " " + r.Route.Name + " ->"
				for _, t := range r.Targets {
					line += " " + t.Node + ":" + portText(t.Port) + "=" + portText(t.Weight)
				}
				list = append(list, line)
			}
		}
	}
	return list
}

func nodeNames(v *mesh.View) []string {
	var list []string
	for _, n := range v.Nodes {
		for _, l := range n.Listeners {
			list = append(list, n.Name+":"+portText(l.Port))
		}
	}
	return list
}

func TestTheDJAppsViewHoldsWhatDJReachesAndNothingElse(t *testing.T) {
	t.Parallel()
	v, findings := djApp().view(t, "dj")
	wantFindings(t, findings)
	want := []string{
		"jazz.prod.svc.cluster.local:9080 jazz-route -> jazz-v1:9080=90 jazz-v2:9080=10",
		"metal.prod.svc.cluster.local:9080 metal-route -> metal-v1:9080=50 metal-v2:9080=50",
	}
	if diff := cmp.Diff(want, answers(v)); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"jazz-v1:9080", "jazz-v2:9080", "metal-v1:9080", "metal-v2:9080"}, nodeNames(v)); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
	if v.Egress != mesh.EgressDropAll {
		t.Errorf("egress is %q, want the default DROP_ALL", v.Egress)
	}
	if route := v.Services[0].Ports[0].Routes[0]; route.DefaultTimeout.Span() != mesh.DefaultRequestTimeout || route.Timeout != nil {
		t.Errorf("a route without timeout gets %v and default %v, want the 15 s default", route.Timeout, route.DefaultTimeout)
	}
}

// withRoute is a client "c" of the service "s" at a router "r" with one route for each of specs, and nodes a (http/8080), b (http/8081), tcp (tcp/9000), two (http/8080 and http/8090).
func withRoute(listeners []string, routes ...*mesh.Route) model {
	m := newModel(
		aMesh(), aClient("c", "s"), aService("s", byRouter("r")), aRouter("r", listeners...),
		aNode("a", "http/8080"), aNode("b", "http/8081"), aNode("tcp", "tcp/9000"), aNode("two", "http/8080", "http/8090"), aNode("none"),
	)
	for _, r := range routes {
		m = m.with(r)
	}
	return m
}

func TestRoutes(t *testing.T) {
	t.Parallel()
	http80 := []string{"http/80"}
	withPort := func(r *mesh.Route, port int32) *mesh.Route { r.Spec.HTTPRoute.Match.Port = &port; return r }
	target := "VirtualRouter/r spec.routes[0].httpRoute.action.weightedTargets[0]"
	for name, c := range map[string]struct {
		model    model
		answers  []string
		findings []string
	}{
		"a target with one listener needs no port": {
			withRoute(http80, httpRoute("r", "x", "/", "a=1", "b=1")),
			[]string{"s:80 x -> a:8080=1 b:8081=1"},
			nil,
		},
		"a target that does not exist is left out, and the rest goes on": {
			withRoute(http80, httpRoute("r", "x", "/", "gone=50", "b=50")),
			[]string{"s:80 x -> b:8081=50"},
			[]string{"error RefNotFound " + target + ".virtualNode"},
		},
		"a route whose targets are all missing stays and answers nothing": {
			withRoute(http80, httpRoute("r", "x", "/", "gone=50")),
			[]string{"s:80 x ->"},
			[]string{"error RefNotFound " + target + ".virtualNode", "warning NoTraffic VirtualRouter/r spec.routes[0].httpRoute.action.weightedTargets"},
		},
		"weights that are all zero stay, and answer nothing": {
			withRoute(http80, httpRoute("r", "x", "/", "a=0", "b=0")),
			[]string{"s:80 x -> a:8080=0 b:8081=0"},
			[]string{"warning NoTraffic VirtualRouter/r spec.routes[0].httpRoute.action.weightedTargets"},
		},
		"a negative weight leaves its target out": {
			withRoute(http80, httpRoute("r", "x", "/", "a=-1", "b=1")),
			[]string{"s:80 x -> b:8081=1"},
			[]string{"error Invalid " + target + ".weight"},
		},
		"a target's port picks its listener": {
			withRoute(http80, httpRoute("r", "x", "/", "two:8090=1")),
			[]string{"s:80 x -> two:8090=1"},
			nil,
		},
		"a target's port without a listener leaves the target out": {
			withRoute(http80, httpRoute("r", "x", "/", "two:1=1", "a=1")),
			[]string{"s:80 x -> a:8080=1"},
			[]string{"error RefNotFound " + target + ".port"},
		},
		"a target of two listeners without a port takes the router's port": {
			withRoute([]string{"http/8090"}, httpRoute("r", "x", "/", "two=1")),
			[]string{"s:8090 x -> two:8090=1"},
			[]string{"warning RefAmbiguous " + target + ".port"},
		},
		"a target of two listeners without a port, neither the router's, takes the first": {
			withRoute(http80, httpRoute("r", "x", "/", "two=1")),
			[]string{"s:80 x -> two:8080=1"},
			[]string{"warning RefAmbiguous " + target + ".port"},
		},
		"a target without listeners is left out": {
			withRoute(http80, httpRoute("r", "x", "/", "none=1", "a=1")),
			[]string{"s:80 x -> a:8080=1"},
			[]string{"error RefNotFound " + target + ".virtualNode"},
		},
		"a target for tcp cannot take http": {
			withRoute(http80, httpRoute("r", "x", "/", "tcp=1", "a=1")),
			[]string{"s:80 x -> a:8080=1"},
			[]string{"error ProtocolMismatch " + target},
		},
		"a target for http2 takes http, with a warning": {
			withRoute(http80, httpRoute("r", "x", "/", "a=1")).with(aNode("a", "http2/8080")),
			[]string{"s:80 x -> a:8080=1"},
			[]string{"warning ProtocolMismatch " + target},
		},
		"a route of another protocol than its listener's is left out": {
			withRoute(http80, tcpRoute("r", "x", "tcp=1")),
			[]string{"s:80 -"},
			[]string{"error ProtocolMismatch VirtualRouter/r spec.routes[0].tcpRoute", "warning NoTraffic VirtualRouter/r spec.listeners"},
		},
		"a route's port picks the router's listener": {
			withRoute([]string{"http/80", "http/81"}, withPort(httpRoute("r", "x", "/", "a=1"), 81), withPort(httpRoute("r", "y", "/", "b=1"), 80)),
			[]string{"s:80 y -> b:8081=1", "s:81 x -> a:8080=1"},
			nil,
		},
		"a route without a port serves the first of several listeners": {
			withRoute([]string{"http/81", "http/80"}, httpRoute("r", "x", "/", "a=1")),
			[]string{"s:80 -", "s:81 x -> a:8080=1"},
			[]string{"warning RefAmbiguous VirtualRouter/r spec.routes[0].httpRoute.match.port", "warning NoTraffic VirtualRouter/r spec.listeners"},
		},
		"a route for a port that the router lacks is left out": {
			withRoute(http80, withPort(httpRoute("r", "x", "/", "a=1"), 81), httpRoute("r", "y", "/", "a=1")),
			[]string{"s:80 y -> a:8080=1"},
			[]string{"error RefNotFound VirtualRouter/r spec.routes[0].httpRoute.match.port"},
		},
		"a route of no kind is left out": {
			withRoute(http80, aRoute("r", "x", mesh.RouteSpec{})),
			[]string{"s:80 -"},
			[]string{"error Invalid VirtualRouter/r spec.routes[0]", "warning NoTraffic VirtualRouter/r spec.listeners"},
		},
		"a route that Envoy would refuse is left out alone": {
			withRoute(http80, httpRoute("r", "y", "/", "a=1"), aRoute("r", "x", mesh.RouteSpec{HTTPRoute: &mesh.HTTPRoute{
				Match: mesh.HTTPRouteMatch{Path: &mesh.HTTPPathMatch{Regex: new("(")}, Headers: []mesh.HeaderMatch{
					{Name: "a b"}, {Name: "n", Match: &mesh.ValueMatch{Range: &mesh.MatchRange{Start: 5, End: 5}}}, {Name: "r", Match: &mesh.ValueMatch{Regex: new("[")}},
				}},
				Action: action("a=1"),
			}})),
			[]string{"s:80 y -> a:8080=1"},
			[]string{
				"error Invalid VirtualRouter/r spec.routes[0].httpRoute.match.path.regex", "error Invalid VirtualRouter/r spec.routes[0].httpRoute.match.headers[0].name",
				"error Invalid VirtualRouter/r spec.routes[0].httpRoute.match.headers[1].match.range", "error Invalid VirtualRouter/r spec.routes[0].httpRoute.match.headers[2].match.regex",
			},
		},
		"a router without listeners answers nothing": {
			withRoute(nil, httpRoute("r", "x", "/", "a=1")), nil, []string{"error Invalid VirtualRouter/r spec.listeners"},
		},
		"a listener without a usable port or protocol, or with the port of another, is left out": {
			withRoute([]string{"http/0", "udp/80", "http/80", "tcp/80"}, httpRoute("r", "x", "/", "a=1")),
			[]string{"s:80 x -> a:8080=1"},
			[]string{
				"error Invalid VirtualRouter/r spec.listeners[0].portMapping", "error Invalid VirtualRouter/r spec.listeners[1].portMapping", "error Duplicate VirtualRouter/r spec.listeners[3].portMapping.port",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, findings := c.model.view(t, "c")
			if diff := cmp.Diff(c.answers, answers(v), equateEmpty); diff != "" {
				t.Errorf("routes (-want +got):\n%s", diff)
			}
			wantFindings(t, findings, c.findings...)
		})
	}
}

func TestPrecedenceOfRoutes(t *testing.T) {
	t.Parallel()
	route := func(name string, priority *int32, position int, match mesh.HTTPRouteMatch) *mesh.Route {
		r := aRoute("r", name, mesh.RouteSpec{Priority: priority, HTTPRoute: &mesh.HTTPRoute{Match: match, Action: action("a=1")}})
		r.Position = position
		return r
	}
	prefix := func(p string) mesh.HTTPRouteMatch { return mesh.HTTPRouteMatch{Prefix: &p} }
	exact := mesh.HTTPRouteMatch{Path: &mesh.HTTPPathMatch{Exact: new("/x")}}
	regex := mesh.HTTPRouteMatch{Path: &mesh.HTTPPathMatch{Regex: new("/x.*")}}
	narrow := mesh.HTTPRouteMatch{Prefix: new("/long"), Method: "GET", Headers: []mesh.HeaderMatch{{Name: "h"}}}
	narrower := mesh.HTTPRouteMatch{Prefix: new("/long"), Scheme: "http", QueryParameters: []mesh.QueryParameter{{Name: "q"}}, Headers: []mesh.HeaderMatch{{Name: "h"}}}
	m := withRoute([]string{"http/80"},
		route("priority-1-short", new(int32(1)), 20, prefix("/")), route("priority-0-short", new(int32(0)), 21, prefix("/")), route("priority-1000-prefix", new(int32(1000)), 1, prefix("/lon")),
		route("exact", nil, 22, exact), route("regex", nil, 23, regex), route("long", nil, 24, prefix("/long")), route("long-narrow", nil, 25, narrow), route("long-narrower", nil, 26, narrower),
		route("short-second", nil, 3, prefix("/")), route("short-first", nil, 2, prefix("/")), route("same-place-b", nil, 4, prefix("/")), route("same-place-a", nil, 4, prefix("/")),
	)
	v, findings := m.view(t, "c")
	wantFindings(t, findings)
	var got []string
	for _, r := range v.Services[0].Ports[0].Routes {
		got = append(got, r.Route.Name)
	}
	want := []string{
		"priority-0-short", "priority-1-short", "exact", "regex", "long-narrower", "long-narrow", "long", "priority-1000-prefix",
		"short-first", "short-second", "same-place-a", "same-place-b",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestPrecedenceOfGRPCRoutes(t *testing.T) {
	t.Parallel()
	m := withRoute([]string{"grpc/80"},
		grpcRoute("any", mesh.GRPCRouteMatch{}, "g=1"), grpcRoute("service", mesh.GRPCRouteMatch{ServiceName: "a.B"}, "g=1"),
		grpcRoute("method", mesh.GRPCRouteMatch{ServiceName: "a.B", MethodName: "C"}, "g=1"),
		grpcRoute("tagged", mesh.GRPCRouteMatch{ServiceName: "a.B", Metadata: []mesh.HeaderMatch{{Name: "h"}}}, "g=1"),
	).with(aNode("g", "grpc/1"))
	v, findings := m.view(t, "c")
	wantFindings(t, findings)
	var got []string
	for _, r := range v.Services[0].Ports[0].Routes {
		got = append(got, r.Route.Name)
		if r.GRPC == nil || r.HTTP != nil || r.TCP {
			t.Errorf("route %s is not for grpc alone: %+v", r.Route.Name, r)
		}
	}
	if diff := cmp.Diff([]string{"method", "tagged", "service", "any"}, got); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
}

func TestServices(t *testing.T) {
	t.Parallel()
	backend := "VirtualNode/c spec.backends[0].virtualService"
	for name, c := range map[string]struct {
		model    model
		answers  []string
		findings []string
	}{
		"a missing service is left out, and the rest goes on": {
			newModel(aMesh(), aClient("c", "gone", "s"), aService("s", byNode("a")), aNode("a", "http/80")),
			[]string{"s:80 s -> a:80=100"},
			[]string{"error RefNotFound " + backend + ".virtualServiceName"},
		},
		"a service without a provider answers nothing": {
			newModel(aMesh(), aClient("c", "s"), aService("s", nil)),
			nil,
			[]string{"warning NoTraffic VirtualService/s spec.provider"},
		},
		"a service with two providers answers nothing": {
			newModel(aMesh(), aClient("c", "s"), aNode("a", "http/80"), aService("s", &mesh.VirtualServiceProvider{VirtualNode: byNode("a").VirtualNode, VirtualRouter: byRouter("r").VirtualRouter})),
			nil,
			[]string{"error Invalid VirtualService/s spec.provider"},
		},
		"a missing node as provider": {
			newModel(aMesh(), aClient("c", "s"), aService("s", byNode("gone"))),
			nil,
			[]string{"error RefNotFound VirtualService/s spec.provider.virtualNode.virtualNodeName"},
		},
		"a node without listeners as provider": {
			newModel(aMesh(), aClient("c", "s"), aService("s", byNode("a")), aNode("a")),
			nil,
			[]string{"error RefNotFound VirtualService/s spec.provider.virtualNode.virtualNodeName"},
		},
		"a missing router as provider": {
			newModel(aMesh(), aClient("c", "s"), aService("s", byRouter("gone"))),
			nil,
			[]string{"error RefNotFound VirtualService/s spec.provider.virtualRouter.virtualRouterName"},
		},
		"a router without routes has ports on which nothing answers": {
			newModel(aMesh(), aClient("c", "s"), aService("s", byRouter("r")), aRouter("r", "http/80")),
			[]string{"s:80 -"},
			[]string{"warning NoTraffic VirtualRouter/r spec.listeners"},
		},
		"two services share a router": {
			newModel(aMesh(), aClient("c", "s", "t"), aService("s", byRouter("r")), aService("t", byRouter("r")), aRouter("r", "http/80"), httpRoute("r", "x", "/", "a=1"), aNode("a", "http/80")),
			[]string{"s:80 x -> a:80=1", "t:80 x -> a:80=1"},
			nil,
		},
		"a node as provider answers on all its ports": {
			newModel(aMesh(), aClient("c", "s"), aService("s", byNode("a")), aNode("a", "http/81", "tcp/80", "grpc/82")),
			[]string{"s:80 s -> a:80=100", "s:81 s -> a:81=100", "s:82 s -> a:82=100"},
			nil,
		},
		"nodes that are each other's backends are normal": {
			newModel(aMesh(), aService("s", byNode("a")), aService("u", byNode("c")), backendOf(aNode("c", "http/80"), "s"), backendOf(aNode("a", "http/81"), "u")),
			[]string{"s:81 s -> a:81=100"},
			nil,
		},
		"a backend that names nothing is left out": {
			newModel(aMesh(), aClient("c", "", "s"), aService("s", byNode("a")), aNode("a", "http/80")),
			[]string{"s:80 s -> a:80=100"},
			[]string{"error Invalid " + backend},
		},
		"a backend named twice is there once": {
			newModel(aMesh(), aClient("c", "s", "s"), aService("s", byNode("a")), aNode("a", "http/80")),
			[]string{"s:80 s -> a:80=100"},
			[]string{"warning Duplicate VirtualNode/c spec.backends[1].virtualService.virtualServiceName"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, findings := c.model.view(t, "c")
			if diff := cmp.Diff(c.answers, answers(v), equateEmpty); diff != "" {
				t.Errorf("routes (-want +got):\n%s", diff)
			}
			wantFindings(t, findings, c.findings...)
		})
	}
}

func backendOf(n *mesh.VirtualNode, service string) *mesh.VirtualNode {
	n.Spec.Backends = aClient("", service).Spec.Backends
	return n
}

func TestNoView(t *testing.T) {
	t.Parallel()
	gateway := &mesh.VirtualGateway{Meta: meta("VirtualGateway", "g")}
	route := &mesh.GatewayRoute{Meta: meta("GatewayRoute", "gr"), GatewayName: "g"}
	for name, c := range map[string]struct {
		model    model
		proxy    mesh.Key
		findings []string
	}{
		"a node that does not exist":    {newModel(aMesh()), mesh.NodeKey("m", "c"), nil},
		"a node without its mesh":       {newModel(aClient("c")), mesh.NodeKey("m", "c"), []string{"error RefNotFound VirtualNode/c spec.meshName"}},
		"a gateway that does not exist": {newModel(aMesh()), mesh.GatewayKey("m", "g"), nil},
		"a gateway": {
			newModel(aMesh(), gateway, route), mesh.GatewayKey("m", "g"),
			[]string{"error NotYetSupported VirtualGateway/g spec.listeners", "error NotYetSupported GatewayRoute/gr spec"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, keys, findings := mesh.ViewOf(c.model, c.proxy, mesh.Profile{})
			if v != nil {
				t.Errorf("got a View: %+v", v)
			}
			if len(keys) == 0 {
				t.Error("no key was noted, so the object's appearance would not be noticed")
			}
			wantFindings(t, findings, c.findings...)
		})
	}
}

func TestServicesCarryTheAddressesOfTheServiceThatTheyAreNamedAfter(t *testing.T) {
	t.Parallel()
	two := aKubernetesService("jazz", "10.0.0.2", 9080)
	two.ClusterIPs = append(two.ClusterIPs, netip.MustParseAddr("10.0.0.1"))
	m := djApp().with(two, aKubernetesService("metal", "", 9080))
	v, findings := m.view(t, "dj")
	wantFindings(t, findings)
	want := []netip.Addr{netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")}
	if diff := cmp.Diff(want, v.Services[0].Addresses, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })); diff != "" {
		t.Errorf("addresses of jazz (-want +got):\n%s", diff)
	}
	if len(v.Services[1].Addresses) != 0 {
		t.Errorf("a headless Service gives addresses: %v", v.Services[1].Addresses)
	}
}

func TestWhatAViewTakesFromMeshAndNode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		mesh   mesh.MeshSpec
		node   mesh.IPPreference
		egress mesh.EgressFilterType
		family mesh.IPPreference
	}{
		"an empty mesh lets nothing out":                {mesh.MeshSpec{}, "", mesh.EgressDropAll, ""},
		"DROP_ALL lets nothing out":                     {mesh.MeshSpec{EgressFilter: &mesh.EgressFilter{Type: mesh.EgressDropAll}}, "", mesh.EgressDropAll, ""},
		"ALLOW_ALL lets all out":                        {mesh.MeshSpec{EgressFilter: &mesh.EgressFilter{Type: mesh.EgressAllowAll}}, "", mesh.EgressAllowAll, ""},
		"a filter that nobody knows lets nothing out":   {mesh.MeshSpec{EgressFilter: &mesh.EgressFilter{Type: "ALLOW"}}, "", mesh.EgressDropAll, ""},
		"the mesh's IP preference holds":                {mesh.MeshSpec{ServiceDiscovery: &mesh.MeshServiceDiscovery{IPPreference: mesh.IPv6Only}}, "", mesh.EgressDropAll, mesh.IPv6Only},
		"the node's IP preference wins over the mesh's": {mesh.MeshSpec{ServiceDiscovery: &mesh.MeshServiceDiscovery{IPPreference: mesh.IPv6Only}}, mesh.IPv4Preferred, mesh.EgressDropAll, mesh.IPv4Preferred},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, n := aMesh(), aNode("n", "http/80")
			m.Spec = c.mesh
			n.Spec.ServiceDiscovery.DNS.IPPreference = c.node
			n.Spec.Logging = &mesh.Logging{AccessLog: &mesh.AccessLog{File: &mesh.FileAccessLog{Path: "/dev/stdout"}}}
			profile := mesh.Profile{IPv6: true}
			v, _, findings := mesh.ViewOf(newModel(m, n), n.Key(), profile)
			wantFindings(t, findings)
			if v.Egress != c.egress || v.IPPreference != c.family {
				t.Errorf("egress %q, family %q; want %q and %q", v.Egress, v.IPPreference, c.egress, c.family)
			}
			if v.Proxy != n.Key() || v.Profile != profile || v.Logging != n.Spec.Logging {
				t.Errorf("proxy %v, profile %v, logging %v are not those given", v.Proxy, v.Profile, v.Logging)
			}
		})
	}
}
