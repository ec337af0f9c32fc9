// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"fmt"
	"testing"

	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/store"
)

// bigMesh has services each behind a router with one route to two nodes, found through Services of the cluster; each first node calls the next backends services.
func bigMesh(services, backends int) mesh.Reader {
	objects := []mesh.Object{aMesh()}
	name := func(i int) string { return fmt.Sprintf("s%d.prod.svc.cluster.local", i%services) }
	for i := range services {
		router := fmt.Sprintf("r%d", i)
		objects = append(objects, aService(name(i), byRouter(router)), aRouter(router, "http/8080"),
			httpRoute(router, "all", "/", fmt.Sprintf("n%d-v1=90", i), fmt.Sprintf("n%d-v2=10", i)), aKubernetesService(fmt.Sprintf("s%d", i), "10.0.0.1", 8080))
		for v := 1; v <= 2; v++ {
			n := aNode(fmt.Sprintf("n%d-v%d", i, v), "http/8080")
			n.Spec.ServiceDiscovery.DNS.Hostname = fmt.Sprintf("s%d-v%d.prod.svc.cluster.local", i, v)
			for b := range backends {
				n.Spec.Backends = append(n.Spec.Backends, aClient("", name(i+b+1)).Spec.Backends...)
			}
			slice := fmt.Sprintf("s%d-v%d", i, v)
			objects = append(objects, n, aKubernetesService(slice, "10.0.0.1", 8080))
			addresses := make([]string, 10)
			for a := range addresses {
				addresses[a] = fmt.Sprintf("10.%d.%d.%d", v, i%250, a+1)
			}
			objects = append(objects, aSlice(slice, slice+"-x", 8080, addresses...))
		}
	}
	s := store.New(mesh.Options{})
	s.Apply(mesh.Changes{Set: objects})
	return s.Snapshot()
}

func BenchmarkViewOf(b *testing.B) {
	for _, services := range []int{100, 1000} {
		b.Run(fmt.Sprintf("%d services, 10 backends", services), func(b *testing.B) {
			m := bigMesh(services, 10)
			b.ReportAllocs()
			for b.Loop() {
				if v, _, findings := mesh.ViewOf(m, mesh.NodeKey("m", "n0-v1"), mesh.Profile{}); len(v.Services) != 10 || len(findings) != 0 {
					b.Fatal(len(v.Services), findings)
				}
			}
		})
	}
}

// BenchmarkViewWith is what a View costs a caller that keeps Offers.
func BenchmarkViewWith(b *testing.B) {
	m := bigMesh(100, 10)
	offers := map[string]*mesh.Offer{}
	offer := func(service string) *mesh.Offer {
		if offers[service] == nil {
			offers[service], _, _ = mesh.OfferOf(m, mesh.VirtualServiceKey("m", service))
		}
		return offers[service]
	}
	last, _, _ := mesh.ViewWith(m, mesh.NodeKey("m", "n0-v1"), mesh.Profile{}, offer)
	b.ReportAllocs()
	for b.Loop() {
		if v, _, _ := mesh.ViewWith(m, mesh.NodeKey("m", "n0-v1"), mesh.Profile{}, offer); !v.Equal(last) {
			b.Fatal(v)
		}
	}
}

func BenchmarkEndpointSetOf(b *testing.B) {
	m := bigMesh(1000, 10)
	b.ReportAllocs()
	for b.Loop() {
		set, _, _ := mesh.EndpointSetOf(m, mesh.EndpointSetKey{Mesh: "m", Node: "n0-v1", Port: 8080, Protocol: mesh.ProtocolHTTP})
		if len(set.Endpoints) != 10 {
			b.Fatal(set)
		}
	}
}

func BenchmarkValidate(b *testing.B) {
	route := httpRoute("r", "x", "/", "a=50", "b=50")
	node := aNode("a", "http/80")
	b.ReportAllocs()
	for b.Loop() {
		if len(mesh.Validate(route))+len(mesh.Validate(node)) != 0 {
			b.Fatal("findings")
		}
	}
}
