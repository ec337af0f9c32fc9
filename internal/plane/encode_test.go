// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package plane

import (
	"context"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/store"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// TestWhatCannotBeMarshalledLeavesTheRest has a node whose name is no text, so that its cluster cannot be marshalled. The finding stays with every change, the rest is delivered, and all
// is well once the node is gone.
func TestWhatCannotBeMarshalledLeavesTheRest(t *testing.T) {
	t.Parallel()
	const service = "s.ns.svc.cluster.local"
	listeners := []mesh.Listener{{PortMapping: mesh.PortMapping{Port: 8080, Protocol: mesh.ProtocolHTTP}}}
	discovery := &mesh.ServiceDiscovery{DNS: &mesh.DNSServiceDiscovery{Hostname: "example.com"}}
	node := func(name string) *mesh.VirtualNode {
		return &mesh.VirtualNode{Meta: mesh.Meta{MeshName: "m", Name: name}, Spec: mesh.VirtualNodeSpec{Listeners: listeners, ServiceDiscovery: discovery}}
	}
	spread := func(path string, weight int32, nodes ...string) *mesh.Route {
		r := &mesh.Route{Meta: mesh.Meta{MeshName: "m", Name: path[1:]}, RouterName: "r", Spec: mesh.RouteSpec{HTTPRoute: &mesh.HTTPRoute{Match: mesh.HTTPRouteMatch{Prefix: &path}}}}
		for _, n := range nodes {
			r.Spec.HTTPRoute.Action.WeightedTargets = append(r.Spec.HTTPRoute.Action.WeightedTargets, mesh.WeightedTarget{VirtualNode: n, Weight: weight})
		}
		return r
	}
	client := node("client")
	client.Spec.Backends = []mesh.Backend{{VirtualService: &mesh.VirtualServiceBackend{VirtualServiceName: service}}}
	s := store.New(mesh.Options{})
	s.Apply(mesh.Changes{Set: []mesh.Object{
		&mesh.Mesh{Meta: mesh.Meta{MeshName: "m", Name: "m"}}, client, node("good"), node("bad\xff"),
		&mesh.VirtualService{Meta: mesh.Meta{MeshName: "m", Name: service}, Spec: mesh.VirtualServiceSpec{
			Provider: &mesh.VirtualServiceProvider{VirtualRouter: &mesh.VirtualRouterServiceProvider{VirtualRouterName: "r"}},
		}},
		&mesh.VirtualRouter{Meta: mesh.Meta{MeshName: "m", Name: "r"}, Spec: mesh.VirtualRouterSpec{Listeners: []mesh.VirtualRouterListener{{PortMapping: listeners[0].PortMapping}}}},
		spread("/good", 1, "good"), spread("/bad", 0, "bad\xff"),
	}})
	p, got := start(s)
	watch := s.Watch()
	defer watch.Close()
	group, err := p.Join(context.Background(), xds.Proxy{NodeID: "mesh/m/virtualNode/client"})
	if err != nil {
		t.Fatal(err)
	}
	step := func(c mesh.Changes) {
		s.Apply(c)
		keys, since := watch.Take()
		p.step(keys, since)
	}
	faults := func() int {
		return len(slices.Collect(func(yield func(mesh.Finding) bool) {
			for _, f := range p.Findings() {
				if strings.Contains(f.Message, "cannot be encoded") && !yield(f) {
					return
				}
			}
		}))
	}
	const routes, cluster = xds.RouteType + " rds_egress_http_8080", xds.ClusterType + " cds_egress_m_good_http_8080"
	before := maps.Clone(got.Groups[group])
	if before[routes] == "" || before[cluster] == "" || faults() != 1 {
		t.Fatalf("%d findings of marshalling, and delivered: %v", faults(), slices.Sorted(maps.Keys(before)))
	}
	for weight := range int32(3) {
		step(mesh.Changes{Set: []mesh.Object{spread("/good", weight+1, "good", "client")}})
		after := got.Groups[group]
		if after[routes] == before[routes] || after[cluster] != before[cluster] || faults() != 1 {
			t.Fatalf("after change %d: %d findings of marshalling; delivered before: %v, now: %v", weight, faults(), before, after)
		}
		before = maps.Clone(after)
	}
	step(mesh.Changes{Removed: []mesh.Key{mesh.RouteKey("m", "r", "bad")}})
	if faults() != 0 || len(got.Groups[group]) != len(before) {
		t.Errorf("once the node is gone: %v, delivered: %v", p.Findings(), got.Groups[group])
	}
}
