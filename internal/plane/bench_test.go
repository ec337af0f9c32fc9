// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package plane

import (
	"context"
	"fmt"
	"log/slog"
	"net/netip"
	"runtime"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/store"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// town is a mesh in which every node calls service 0 and a few others, with a proxy of each node.
func town(b *testing.B, groups, services, backends int) (*store.Memory, *Plane) {
	b.Helper()
	s := country(groups, services, backends)
	return s, join(b, s, groups)
}

// country is town's mesh, without proxies.
func country(groups, services, backends int) *store.Memory {
	s := store.New(mesh.Options{})
	c := mesh.Changes{Set: []mesh.Object{&mesh.Mesh{Meta: mesh.Meta{MeshName: "m", Name: "m"}}}}
	for i := range services {
		name := fmt.Sprint("s", i)
		mapping := mesh.PortMapping{Port: 8080, Protocol: mesh.ProtocolHTTP}
		c.Set = append(c.Set,
			&mesh.VirtualNode{Meta: mesh.Meta{MeshName: "m", Name: name + "_ns", Source: mesh.Source{Namespace: "ns"}}, Spec: mesh.VirtualNodeSpec{
				Listeners:        []mesh.Listener{{PortMapping: mapping}},
				ServiceDiscovery: &mesh.ServiceDiscovery{DNS: &mesh.DNSServiceDiscovery{Hostname: name + ".ns.svc.cluster.local"}},
			}},
			&mesh.VirtualService{Meta: mesh.Meta{MeshName: "m", Name: name + ".ns.svc.cluster.local"}, Spec: mesh.VirtualServiceSpec{
				Provider: &mesh.VirtualServiceProvider{VirtualRouter: &mesh.VirtualRouterServiceProvider{VirtualRouterName: name}},
			}},
			&mesh.VirtualRouter{Meta: mesh.Meta{MeshName: "m", Name: name}, Spec: mesh.VirtualRouterSpec{Listeners: []mesh.VirtualRouterListener{{PortMapping: mapping}}}},
			weight(i, 1),
			&mesh.Service{Namespace: "ns", Name: name, ClusterIPs: []netip.Addr{netip.AddrFrom4([4]byte{10, 1, byte(i >> 8), byte(i)})}, Ports: []mesh.ServicePort{{Port: 8080}}},
			slice(i, 10),
		)
	}
	for i := range groups {
		n := &mesh.VirtualNode{Meta: mesh.Meta{MeshName: "m", Name: fmt.Sprint("client", i)}, Spec: mesh.VirtualNodeSpec{Listeners: []mesh.Listener{{PortMapping: mesh.PortMapping{Port: 8080, Protocol: mesh.ProtocolHTTP}}}}}
		for k := range backends {
			service := 0
			if k > 0 {
				service = 1 + (i*backends+k)%(services-1)
			}
			n.Spec.Backends = append(n.Spec.Backends, mesh.Backend{VirtualService: &mesh.VirtualServiceBackend{VirtualServiceName: fmt.Sprintf("s%d.ns.svc.cluster.local", service)}})
		}
		c.Set = append(c.Set, n)
	}
	s.Apply(c)
	return s
}

// join connects a proxy of each node to a new plane.
func join(b *testing.B, s *store.Memory, groups int) *Plane {
	b.Helper()
	p := New(Options{Store: s, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Time{} }, Recorder: quiet{}})
	p.Deliver(xds.New(xds.Options{Director: p, Clock: clock.NewFake(time.Time{})}))
	metadata, err := structpb.NewStruct(map[string]any{"tulle": map[string]any{}})
	if err != nil {
		b.Fatal(err)
	}
	for i := range groups {
		if _, err := p.Join(context.Background(), xds.Proxy{NodeID: fmt.Sprintf("mesh/m/virtualNode/client%d", i), Metadata: metadata}); err != nil {
			b.Fatal(err)
		}
	}
	return p
}

func weight(service int, w int32) *mesh.Route {
	prefix := "/"
	return &mesh.Route{
		Meta: mesh.Meta{MeshName: "m", Name: "all"}, RouterName: fmt.Sprint("s", service),
		Spec: mesh.RouteSpec{HTTPRoute: &mesh.HTTPRoute{Match: mesh.HTTPRouteMatch{Prefix: &prefix}, Action: mesh.RouteAction{WeightedTargets: []mesh.WeightedTarget{
			{VirtualNode: fmt.Sprintf("s%d_ns", service), Weight: w}, {VirtualNode: fmt.Sprintf("s%d_ns", service+1), Weight: 50},
		}}}},
	}
}

func slice(service, endpoints int) *mesh.EndpointSlice {
	s := &mesh.EndpointSlice{Namespace: "ns", ServiceName: fmt.Sprint("s", service), Name: "x", Ports: []mesh.EndpointPort{{Port: 8080}}}
	for i := range endpoints {
		s.Endpoints = append(s.Endpoints, mesh.Endpoint{Address: netip.AddrFrom4([4]byte{10, 2, byte(service), byte(1 + i)}), Ready: true, Serving: true})
	}
	return s
}

// BenchmarkChange is what one change costs from the store through delivery's own books, for every proxy that it concerns; sending it is not in it. On a machine that does other work too, read CPU time.
func BenchmarkChange(b *testing.B) {
	for _, size := range []struct{ groups, services, backends int }{{100, 100, 5}, {200, 300, 5}, {200, 3000, 5}, {1000, 1000, 10}} {
		name := fmt.Sprintf("proxies=%d/services=%d", size.groups, size.services)
		s, p := town(b, size.groups, size.services, size.backends)
		watch := s.Watch()
		step := func(o mesh.Object) {
			s.Apply(mesh.Changes{Set: []mesh.Object{o}})
			keys, since := watch.Take()
			p.step(keys, since)
		}
		b.Run(name+"/weight", func(b *testing.B) {
			b.ReportAllocs()
			before := cpu(b)
			for i := 0; b.Loop(); i++ {
				step(weight(0, int32(1+i%40)))
			}
			b.ReportMetric(float64((cpu(b)-before).Microseconds())/float64(b.N*size.groups), "cpu-µs/proxy")
		})
		b.Run(name+"/endpoint", func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				step(slice(0, 10+i%2))
			}
		})
		watch.Close()
	}
}

// cpu is the CPU time that the process has taken.
func cpu(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkConnect is what it takes to have all proxies connect, one after another, and what is held for each of them then.
func BenchmarkConnect(b *testing.B) {
	for _, size := range []struct{ groups, services, backends int }{{200, 300, 5}, {1000, 1000, 10}} {
		b.Run(fmt.Sprintf("proxies=%d/services=%d", size.groups, size.services), func(b *testing.B) {
			var held, spent float64
			for b.Loop() {
				b.StopTimer()
				s := country(size.groups, size.services, size.backends)
				before := heap()
				b.StartTimer()
				began := cpu(b)
				p := join(b, s, size.groups)
				spent += float64((cpu(b) - began).Microseconds())
				b.StopTimer()
				held += float64(heap() - before)
				runtime.KeepAlive(s)
				runtime.KeepAlive(p)
				b.StartTimer()
			}
			b.ReportMetric(held/float64(b.N*size.groups), "held-B/proxy")
			b.ReportMetric(spent/float64(b.N*size.groups), "cpu-µs/proxy")
		})
	}
}

// heap is the memory that is in use, in bytes.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
