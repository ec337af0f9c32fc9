// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy_test

import (
	"fmt"
	"net/netip"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/test/simulate"
)

// canaries is a scene whose proxy has n backends, each a router that spreads over two nodes.
func canaries(n int) *simulate.Scene {
	listener := mesh.Listener{PortMapping: mesh.PortMapping{Port: 8080, Protocol: mesh.ProtocolHTTP}}
	s := &simulate.Scene{Proxy: "caller", VirtualNodes: map[string]mesh.VirtualNodeSpec{}, VirtualServices: map[string]mesh.VirtualServiceSpec{}, VirtualRouters: map[string]simulate.Router{}}
	caller := mesh.VirtualNodeSpec{Listeners: []mesh.Listener{listener}}
	for i := range n {
		service := fmt.Sprintf("svc-%03d.default.svc.cluster.local", i)
		router := fmt.Sprintf("svc-%03d_default", i)
		route := mesh.HTTPRoute{Match: mesh.HTTPRouteMatch{Prefix: new("/")}}
		for v, weight := range []int32{90, 10} {
			node := fmt.Sprintf("svc-%03d-v%d_default", i, v+1)
			host := fmt.Sprintf("svc-%03d-v%d.default.svc.cluster.local", i, v+1)
			s.VirtualNodes[node] = mesh.VirtualNodeSpec{
				Listeners: []mesh.Listener{listener}, ServiceDiscovery: &mesh.ServiceDiscovery{DNS: &mesh.DNSServiceDiscovery{Hostname: host}},
			}
			route.Action.WeightedTargets = append(route.Action.WeightedTargets, mesh.WeightedTarget{VirtualNode: node, Weight: weight})
		}
		s.VirtualRouters[router] = simulate.Router{
			VirtualRouterSpec: mesh.VirtualRouterSpec{Listeners: []mesh.VirtualRouterListener{{PortMapping: listener.PortMapping}}},
			Routes:            []simulate.Route{{Name: "all", RouteSpec: mesh.RouteSpec{HTTPRoute: &route}}},
		}
		provider := mesh.VirtualRouterServiceProvider{VirtualRouterName: router}
		s.VirtualServices[service] = mesh.VirtualServiceSpec{Provider: &mesh.VirtualServiceProvider{VirtualRouter: &provider}}
		caller.Backends = append(caller.Backends, mesh.Backend{VirtualService: &mesh.VirtualServiceBackend{VirtualServiceName: service}})
	}
	s.VirtualNodes[s.Proxy] = caller
	return s
}

func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{5, 10} {
		v, _, err := canaries(n).View()
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprintf("%d backends", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				envoy.Build(v)
			}
		})
	}
}

func BenchmarkEndpoints(b *testing.B) {
	for _, n := range []int{10, 1000} {
		set := endpointSet(n)
		b.Run(fmt.Sprintf("%d endpoints", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				envoy.Endpoints(set)
			}
		})
	}
}

// endpointSet has n endpoints over two zones.
func endpointSet(n int) *mesh.EndpointSet {
	set := &mesh.EndpointSet{Key: mesh.EndpointSetKey{Mesh: "m", Node: "node_default", Port: 8080, Protocol: mesh.ProtocolHTTP}}
	for i := range n {
		address := netip.AddrFrom4([4]byte{10, byte(i >> 16), byte(i >> 8), byte(i)})
		set.Endpoints = append(set.Endpoints, mesh.SetEndpoint{Address: netip.AddrPortFrom(address, 8080), Zone: string(rune('a' + i*2/n))})
	}
	return set
}

// TestAWeightChangeIsSmall holds the size of what a proxy with five backends gets for a weight change: its goal is 1.5 kB.
func TestAWeightChangeIsSmall(t *testing.T) {
	t.Parallel()
	v, _ := view(t, canaries(5))
	made, _ := envoy.Build(v)
	for _, r := range made.Routes {
		if size := proto.Size(r.Message); size > 1500 {
			t.Errorf("%s has %d bytes", r.Name, size)
		} else {
			t.Logf("%s has %d bytes", r.Name, size)
		}
	}
}
