// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package plane

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/store"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// held is what the proxies have, as far as a Deliverer can tell: versions are hashes of bytes.
type held struct {
	Groups    map[string]map[string]string
	Endpoints map[string]string
}

func (h *held) Apply(u xds.Update) {
	for name, c := range u.Groups {
		if c == nil {
			delete(h.Groups, name)
			continue
		}
		versions := map[string]string{}
		for _, list := range [][]*xds.Resource{c.Clusters, c.Listeners, c.Routes} {
			for _, r := range list {
				versions[r.TypeURL()+" "+r.Name()] = fmt.Sprint(r.Version(), r.Endpoints, r.Warms, r.Needs, r.Origin)
			}
		}
		h.Groups[name] = versions
	}
	for name, r := range u.Endpoints {
		if r == nil {
			delete(h.Endpoints, name)
			continue
		}
		h.Endpoints[name] = r.Version()
	}
}

type quiet struct{}

func (quiet) Built(int, int, time.Duration) {}

func newHeld() *held {
	return &held{Groups: map[string]map[string]string{}, Endpoints: map[string]string{}}
}

func start(s *store.Memory) (*Plane, *held) {
	h := newHeld()
	p := New(Options{Store: s, Logger: slog.New(slog.DiscardHandler), Now: func() time.Time { return time.Time{} }, Recorder: quiet{}})
	p.Deliver(h)
	return p, h
}

// proxies of every node that the generator makes, some of them with a profile of their own.
func proxies(t *testing.T) []xds.Proxy {
	t.Helper()
	plain, err := structpb.NewStruct(map[string]any{"tulle": map[string]any{"ipv6": true}})
	if err != nil {
		t.Fatal(err)
	}
	var list []xds.Proxy
	for i := range nodes {
		list = append(list, xds.Proxy{NodeID: fmt.Sprintf("mesh/m/virtualNode/n%d", i), Metadata: plain})
	}
	return append(list, xds.Proxy{NodeID: "mesh/m/virtualNode/n0"})
}

const (
	nodes    = 6
	services = 8
)

// TestAfterEveryStepTheIncrementalStateEqualsABuildFromScratch is the property that the whole loop hangs on.
func TestAfterEveryStepTheIncrementalStateEqualsABuildFromScratch(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			g := generator{rng: rand.New(rand.NewPCG(seed, 7))}
			s := store.New(mesh.Options{})
			p, got := start(s)
			watch := s.Watch()
			defer watch.Close()
			joined := map[string]string{}
			s.Apply(mesh.Changes{Set: []mesh.Object{&mesh.Mesh{Meta: mesh.Meta{MeshName: "m", Name: "m"}}}})
			for step := range 120 {
				s.Apply(g.changes())
				keys, since := watch.Take()
				p.step(keys, since)
				g.joinSome(t, p, got, joined)
				fresh, want := start(s)
				for id := range joined {
					if _, err := fresh.Join(context.Background(), proxyOf(t, id)); err != nil {
						t.Fatalf("step %d: a fresh plane refuses %s: %v", step, id, err)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("step %d: the incremental state differs (-scratch +incremental):\n%s", step, diff)
				}
				if diff := cmp.Diff(fresh.Findings(), p.Findings(), cmpopts.EquateEmpty()); diff != "" {
					t.Fatalf("step %d: what is found differs (-scratch +incremental):\n%s", step, diff)
				}
			}
			for id, name := range joined {
				p.Leave(name)
				delete(joined, id)
			}
			if diff := cmp.Diff(newHeld(), got); diff != "" {
				t.Errorf("something is left after the last proxy (-want +got):\n%s", diff)
			}
			if len(p.readBy) != 0 || len(p.groups) != 0 || len(p.offers) != 0 || len(p.sets) != 0 {
				t.Errorf("%d index entries, %d groups, %d offers, %d sets are left", len(p.readBy), len(p.groups), len(p.offers), len(p.sets))
			}
		})
	}
}

func proxyOf(t *testing.T, id string) xds.Proxy {
	t.Helper()
	for _, p := range proxies(t) {
		if id == fmt.Sprint(p.NodeID, p.Metadata != nil) {
			return p
		}
	}
	t.Fatalf("no proxy %s", id)
	return xds.Proxy{}
}

type generator struct{ rng *rand.Rand }

// joinSome lets proxies come and go. A proxy whose group was taken away is sent away by delivery, which the test does in its place.
func (g generator) joinSome(t *testing.T, p *Plane, h *held, joined map[string]string) {
	t.Helper()
	for id, name := range maps.Clone(joined) {
		if h.Groups[name] == nil || g.rng.IntN(10) == 0 {
			p.Leave(name)
			delete(joined, id)
		}
	}
	for _, proxy := range proxies(t) {
		id := fmt.Sprint(proxy.NodeID, proxy.Metadata != nil)
		if joined[id] != "" || g.rng.IntN(4) != 0 {
			continue
		}
		if name, err := p.Join(context.Background(), proxy); err == nil {
			joined[id] = name
		}
	}
}

func (g generator) changes() mesh.Changes {
	var c mesh.Changes
	seen := map[mesh.Key]bool{}
	for range 1 + g.rng.IntN(4) {
		o := g.object()
		if seen[o.Key()] {
			continue
		}
		seen[o.Key()] = true
		if g.rng.IntN(4) == 0 {
			c.Removed = append(c.Removed, o.Key())
		} else {
			c.Set = append(c.Set, o)
		}
	}
	return c
}

func (g generator) object() mesh.Object {
	meta := func(prefix string, n int) mesh.Meta {
		return mesh.Meta{MeshName: "m", Name: fmt.Sprint(prefix, g.rng.IntN(n)), Source: mesh.Source{Namespace: "ns"}}
	}
	switch g.rng.IntN(7) {
	case 0:
		return g.node(meta("n", nodes))
	case 1:
		s := &mesh.VirtualService{Meta: meta("s", services)}
		s.Name += ".ns.svc.cluster.local"
		switch g.rng.IntN(3) {
		case 0:
			s.Spec.Provider = &mesh.VirtualServiceProvider{VirtualNode: &mesh.VirtualNodeServiceProvider{VirtualNodeName: fmt.Sprint("n", g.rng.IntN(nodes))}}
		case 1:
			s.Spec.Provider = &mesh.VirtualServiceProvider{VirtualRouter: &mesh.VirtualRouterServiceProvider{VirtualRouterName: fmt.Sprint("r", g.rng.IntN(services))}}
		}
		return s
	case 2:
		r := &mesh.VirtualRouter{Meta: meta("r", services)}
		for range g.rng.IntN(3) {
			r.Spec.Listeners = append(r.Spec.Listeners, mesh.VirtualRouterListener{PortMapping: g.port()})
		}
		return r
	case 3:
		return g.route(meta("route", 4))
	case 4:
		name := fmt.Sprint("s", g.rng.IntN(services))
		svc := &mesh.Service{Namespace: "ns", Name: name, Ports: []mesh.ServicePort{{Name: "p", Port: g.port().Port}}}
		if g.rng.IntN(3) > 0 {
			svc.ClusterIPs = []netip.Addr{g.address()}
		}
		return svc
	case 5:
		slice := &mesh.EndpointSlice{Namespace: "ns", ServiceName: fmt.Sprint("s", g.rng.IntN(services)), Name: fmt.Sprint("x", g.rng.IntN(2))}
		slice.Ports = []mesh.EndpointPort{{Name: "p", Port: g.port().Port}}
		for range g.rng.IntN(4) {
			slice.Endpoints = append(slice.Endpoints, mesh.Endpoint{Address: g.address(), Ready: g.rng.IntN(3) > 0, Serving: true, Terminating: g.rng.IntN(4) == 0})
		}
		return slice
	default:
		return &mesh.Workload{
			MeshName: "m", NodeName: fmt.Sprint("n", g.rng.IntN(nodes)), Namespace: "ns", Name: fmt.Sprint("pod", g.rng.IntN(4)),
			Addresses: []netip.Addr{g.address()}, Ready: g.rng.IntN(3) > 0,
		}
	}
}

func (g generator) node(m mesh.Meta) *mesh.VirtualNode {
	n := &mesh.VirtualNode{Meta: m, SelectsPods: g.rng.IntN(2) == 0}
	for range g.rng.IntN(3) {
		n.Spec.Listeners = append(n.Spec.Listeners, mesh.Listener{PortMapping: g.port()})
	}
	for range g.rng.IntN(4) {
		n.Spec.Backends = append(n.Spec.Backends, mesh.Backend{VirtualService: &mesh.VirtualServiceBackend{
			VirtualServiceName: fmt.Sprintf("s%d.ns.svc.cluster.local", g.rng.IntN(services)),
		}})
	}
	switch g.rng.IntN(4) {
	case 0:
		n.Spec.ServiceDiscovery = &mesh.ServiceDiscovery{DNS: &mesh.DNSServiceDiscovery{Hostname: fmt.Sprintf("s%d.ns", g.rng.IntN(services))}}
	case 1:
		n.Spec.ServiceDiscovery = &mesh.ServiceDiscovery{DNS: &mesh.DNSServiceDiscovery{Hostname: "example.com", ResponseType: mesh.DNSEndpoints}}
	case 2:
		n.Spec.ServiceDiscovery = &mesh.ServiceDiscovery{AWSCloudMap: &mesh.AWSCloudMapServiceDiscovery{NamespaceName: "a", ServiceName: "b"}}
	}
	return n
}

func (g generator) route(m mesh.Meta) *mesh.Route {
	r := &mesh.Route{Meta: m, RouterName: fmt.Sprint("r", g.rng.IntN(services))}
	action := mesh.RouteAction{}
	for range 1 + g.rng.IntN(3) {
		action.WeightedTargets = append(action.WeightedTargets, mesh.WeightedTarget{VirtualNode: fmt.Sprint("n", g.rng.IntN(nodes)), Weight: int32(g.rng.IntN(30))})
	}
	prefix := fmt.Sprint("/", g.rng.IntN(3))
	switch g.rng.IntN(4) {
	case 0:
		r.Spec.TCPRoute = &mesh.TCPRoute{Action: action}
	case 1:
		r.Spec.GRPCRoute = &mesh.GRPCRoute{Action: action}
	case 2:
		r.Spec.HTTP2Route = &mesh.HTTPRoute{Match: mesh.HTTPRouteMatch{Prefix: &prefix}, Action: action}
	default:
		r.Spec.HTTPRoute = &mesh.HTTPRoute{Match: mesh.HTTPRouteMatch{Prefix: &prefix}, Action: action}
	}
	return r
}

func (g generator) port() mesh.PortMapping {
	protocols := []mesh.Protocol{mesh.ProtocolHTTP, mesh.ProtocolHTTP2, mesh.ProtocolGRPC, mesh.ProtocolTCP}
	return mesh.PortMapping{Port: int32(8080 + g.rng.IntN(3)), Protocol: protocols[g.rng.IntN(len(protocols))]}
}

func (g generator) address() netip.Addr {
	return netip.AddrFrom4([4]byte{10, 0, 0, byte(1 + g.rng.IntN(20))})
}
