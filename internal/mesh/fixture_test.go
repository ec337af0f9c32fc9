// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// model is a Reader over a map, for tests alone.
type model map[mesh.Key]mesh.Object

func newModel(objects ...mesh.Object) model { return model{}.with(objects...) }

// with returns a copy of m in which objects are set.
func (m model) with(objects ...mesh.Object) model {
	next := maps.Clone(m)
	for _, o := range objects {
		next[o.Key()] = o
	}
	return next
}

// without returns a copy of m without the objects.
func (m model) without(keys ...mesh.Key) model {
	next := maps.Clone(m)
	for _, k := range keys {
		delete(next, k)
	}
	return next
}

func (m model) Get(k mesh.Key) mesh.Object { return m[k] }

func (m model) Options() mesh.Options {
	return mesh.Options{Region: "us-west-2", AccountID: "000000000000"}
}

func (m model) Children(list mesh.Key) []mesh.Object {
	list = list.List()
	var children []mesh.Object
	for k, o := range m {
		if k.List() == list {
			children = append(children, o)
		}
	}
	slices.SortFunc(children, func(a, b mesh.Object) int { return a.Key().Compare(b.Key()) })
	return children
}

// view computes a node's View and fails where there is none.
func (m model) view(t *testing.T, node string) (*mesh.View, []mesh.Finding) {
	t.Helper()
	v, keys, findings := mesh.ViewOf(m, mesh.NodeKey("m", node), mesh.Profile{})
	if v == nil {
		t.Fatalf("no View of %s; findings: %v", node, findings)
	}
	if !slices.IsSortedFunc(keys, mesh.Key.Compare) || len(slices.Compact(slices.Clone(keys))) != len(keys) {
		t.Errorf("keys are not sorted, each once: %v", keys)
	}
	return v, findings
}

func meta(kind, name string) mesh.Meta {
	return mesh.Meta{MeshName: "m", Name: name, Source: mesh.Source{APIVersion: "appmesh.k8s.aws/v1beta2", Kind: kind, Namespace: "prod", Name: name}}
}

func aMesh() *mesh.Mesh { return &mesh.Mesh{Meta: meta("Mesh", "m")} }

// mapping reads "http/8080".
func mapping(text string) mesh.PortMapping {
	protocol, port, _ := strings.Cut(text, "/")
	n, err := strconv.ParseInt(port, 10, 32)
	if err != nil {
		panic(err)
	}
	return mesh.PortMapping{Port: int32(n), Protocol: mesh.Protocol(protocol)}
}

// aNode has listeners such as "http/8080" and is found by a name outside the cluster.
func aNode(name string, listeners ...string) *mesh.VirtualNode {
	n := &mesh.VirtualNode{Meta: meta("VirtualNode", name)}
	for _, l := range listeners {
		n.Spec.Listeners = append(n.Spec.Listeners, mesh.Listener{PortMapping: mapping(l)})
	}
	n.Spec.ServiceDiscovery = &mesh.ServiceDiscovery{DNS: &mesh.DNSServiceDiscovery{Hostname: name + ".example.test.org"}}
	return n
}

// aClient calls virtual services.
func aClient(name string, services ...string) *mesh.VirtualNode {
	n := &mesh.VirtualNode{Meta: meta("VirtualNode", name)}
	for _, s := range services {
		n.Spec.Backends = append(n.Spec.Backends, mesh.Backend{VirtualService: &mesh.VirtualServiceBackend{VirtualServiceName: s}})
	}
	return n
}

func aService(name string, provider *mesh.VirtualServiceProvider) *mesh.VirtualService {
	return &mesh.VirtualService{Meta: meta("VirtualService", name), Spec: mesh.VirtualServiceSpec{Provider: provider}}
}

func byNode(name string) *mesh.VirtualServiceProvider {
	return &mesh.VirtualServiceProvider{VirtualNode: &mesh.VirtualNodeServiceProvider{VirtualNodeName: name}}
}

func byRouter(name string) *mesh.VirtualServiceProvider {
	return &mesh.VirtualServiceProvider{VirtualRouter: &mesh.VirtualRouterServiceProvider{VirtualRouterName: name}}
}

func aRouter(name string, listeners ...string) *mesh.VirtualRouter {
	r := &mesh.VirtualRouter{Meta: meta("VirtualRouter", name)}
	for _, l := range listeners {
		r.Spec.Listeners = append(r.Spec.Listeners, mesh.VirtualRouterListener{PortMapping: mapping(l)})
	}
	return r
}

// action reads targets such as "jazz-v1=90" and "jazz-v2:8080=10".
func action(targets ...string) mesh.RouteAction {
	var a mesh.RouteAction
	for _, text := range targets {
		node, weight, _ := strings.Cut(text, "=")
		w, err := strconv.ParseInt(weight, 10, 32)
		if err != nil {
			panic(err)
		}
		t := mesh.WeightedTarget{VirtualNode: node, Weight: int32(w)}
		if name, port, ok := strings.Cut(node, ":"); ok {
			n, err := strconv.ParseInt(port, 10, 32)
			if err != nil {
				panic(err)
			}
			t.VirtualNode, t.Port = name, new(int32(n))
		}
		a.WeightedTargets = append(a.WeightedTargets, t)
	}
	return a
}

func aRoute(router, name string, spec mesh.RouteSpec) *mesh.Route {
	r := &mesh.Route{Meta: meta("VirtualRouter", name), RouterName: router, Spec: spec}
	r.Source.Name = router
	return r
}

func httpRoute(router, name, prefix string, targets ...string) *mesh.Route {
	return aRoute(router, name, mesh.RouteSpec{HTTPRoute: &mesh.HTTPRoute{Match: mesh.HTTPRouteMatch{Prefix: &prefix}, Action: action(targets...)}})
}

func tcpRoute(router, name string, targets ...string) *mesh.Route {
	return aRoute(router, name, mesh.RouteSpec{TCPRoute: &mesh.TCPRoute{Action: action(targets...)}})
}

func grpcRoute(name string, match mesh.GRPCRouteMatch, targets ...string) *mesh.Route {
	return aRoute("r", name, mesh.RouteSpec{GRPCRoute: &mesh.GRPCRoute{Match: match, Action: action(targets...)}})
}

// aKubernetesService has one port without a name, and a ClusterIP where ip is not empty.
func aKubernetesService(name, ip string, port int32) *mesh.Service {
	s := &mesh.Service{Namespace: "prod", Name: name, Ports: []mesh.ServicePort{{Port: port}}, Source: mesh.Source{APIVersion: "v1", Kind: "Service", Namespace: "prod", Name: name}}
	if ip != "" {
		s.ClusterIPs = []netip.Addr{netip.MustParseAddr(ip)}
	}
	return s
}

// aSlice has ready endpoints at addresses, one port without a name.
func aSlice(service, name string, port int32, addresses ...string) *mesh.EndpointSlice {
	s := &mesh.EndpointSlice{Namespace: "prod", ServiceName: service, Name: name, Ports: []mesh.EndpointPort{{Port: port}}}
	for _, a := range addresses {
		s.Endpoints = append(s.Endpoints, mesh.Endpoint{Address: netip.MustParseAddr(a), Ready: true, Serving: true})
	}
	return s
}

// brief writes findings as "severity Reason Kind/name field", to compare what a case is about.
func brief(findings []mesh.Finding) []string {
	list := make([]string, 0, len(findings))
	for _, f := range findings {
		list = append(list, fmt.Sprintf("%s %s %s/%s %s", f.Severity, f.Reason, f.Object.Kind, f.Object.Name, f.Field))
	}
	return list
}

func wantFindings(t *testing.T, findings []mesh.Finding, want ...string) {
	t.Helper()
	slices.Sort(want)
	got := brief(findings)
	slices.Sort(got)
	if diff := cmp.Diff(want, got, equateEmpty); diff != "" {
		t.Errorf("findings (-want +got):\n%s\nin full: %+v", diff, findings)
	}
	for _, f := range findings {
		if f.Message == "" || f.Mend == "" {
			t.Errorf("finding without message or mend: %+v", f)
		}
	}
}

func portText(n int32) string { return strconv.Itoa(int(n)) }

// equateEmpty takes a nil list of strings for an empty one.
var equateEmpty = cmp.Transformer("empty", func(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
})
