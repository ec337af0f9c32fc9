// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"slices"
	"testing"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// randomObject makes an object of a small world, so that names meet often; some names lead nowhere.
func randomObject(r *rand.Rand) mesh.Object {
	pick := func(list ...string) string { return list[r.IntN(len(list))] }
	node := func() string { return pick("n0", "n1", "n2", "gone") }
	service := func() string { return pick("s0.prod", "s1", "s2.prod.svc.cluster.local", "gone") }
	router := func() string { return pick("r0", "r1") }
	listener := func() string { return pick("http/80", "http/81", "tcp/80", "grpc/82", "http2/80") }
	kubernetes := func() string { return pick("s0", "s1", "s2", "k") }
	switch r.IntN(9) {
	case 0:
		m := aMesh()
		m.Spec.EgressFilter = &mesh.EgressFilter{Type: mesh.EgressFilterType(pick("ALLOW_ALL", "DROP_ALL"))}
		m.Spec.ServiceDiscovery = &mesh.MeshServiceDiscovery{IPPreference: mesh.IPPreference(pick("", "IPv6_ONLY"))}
		return m
	case 1, 2:
		return randomNode(r, pick, listener, service)
	case 3:
		if r.IntN(2) == 0 {
			return aService(service(), byNode(node()))
		}
		return aService(service(), byRouter(router()))
	case 4:
		return aRouter(router(), listener(), listener())
	case 5:
		if r.IntN(3) == 0 {
			return tcpRoute(router(), pick("x", "y"), node()+"=1")
		}
		return httpRoute(router(), pick("x", "y"), pick("/", "/a"), node()+"=1", node()+"=2")
	case 6:
		return aKubernetesService(kubernetes(), pick("", "10.0.0.1", "10.0.0.2"), int32(80+r.IntN(2)))
	case 7:
		return aSlice(kubernetes(), pick("a", "b"), int32(80+r.IntN(3)), pick("10.1.0.1", "fd00::1"))
	default:
		return &mesh.Workload{MeshName: "m", NodeName: node(), Namespace: "prod", Name: pick("p", "q"), Ready: r.IntN(2) == 0, Addresses: []netip.Addr{netip.MustParseAddr("10.2.0.1")}}
	}
}

func randomNode(r *rand.Rand, pick func(...string) string, listener, service func() string) *mesh.VirtualNode {
	n := aNode(pick("n0", "n1", "n2"), listener(), listener())
	n.Spec.Backends = aClient("", service(), service()).Spec.Backends
	n.Spec.ServiceDiscovery.DNS.Hostname = pick("k", "k.prod", "k.prod.svc.cluster.local", "example.com", "s0")
	if r.IntN(3) == 0 {
		n.Spec.ServiceDiscovery, n.SelectsPods = nil, true
	}
	if r.IntN(4) == 0 {
		withTLS(n, mesh.TLSMode(pick("STRICT", "PERMISSIVE")))
	}
	if r.IntN(4) == 0 {
		byDefault(n, policy(new(r.IntN(2) == 0)))
	}
	return n
}

func TestAViewChangesOnlyWithObjectsWhoseKeysItHasRead(t *testing.T) {
	t.Parallel()
	type result struct {
		view     *mesh.View
		keys     []mesh.Key
		findings []mesh.Finding
	}
	proxy := mesh.NodeKey("m", "n0")
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 1))
		now := newModel(aMesh(), randomObject(r))
		for step := range 60 {
			o := randomObject(r)
			next := now.with(o)
			if r.IntN(4) == 0 {
				next = now.without(o.Key())
			}
			var before, after result
			before.view, before.keys, before.findings = mesh.ViewOf(now, proxy, mesh.Profile{})
			after.view, after.keys, after.findings = mesh.ViewOf(next, proxy, mesh.Profile{})
			if !slices.Contains(before.keys, o.Key()) && !slices.Contains(before.keys, o.Key().List()) && !reflect.DeepEqual(before, after) {
				t.Fatalf("seed %d, step %d: a change of %s changes the View, though it is not among its keys %v", seed, step, o.Key(), before.keys)
			}
			checkSets(t, now, next, o.Key(), fmt.Sprintf("seed %d, step %d", seed, step))
			now = next
		}
	}
}

// checkSets is the same for endpoint sets.
func checkSets(t *testing.T, now, next model, changed mesh.Key, where string) {
	t.Helper()
	for _, node := range []string{"n0", "n1"} {
		key := mesh.EndpointSetKey{Mesh: "m", Node: node, Port: 80, Protocol: mesh.ProtocolHTTP}
		before, keys, findings := mesh.EndpointSetOf(now, key)
		after, _, nextFindings := mesh.EndpointSetOf(next, key)
		same := reflect.DeepEqual(before, after) && reflect.DeepEqual(findings, nextFindings)
		if !slices.Contains(keys, changed) && !slices.Contains(keys, changed.List()) && !same {
			t.Fatalf("%s: a change of %s changes the endpoints of %s, though it is not among their keys %v", where, changed, node, keys)
		}
	}
}

func TestWhateverChangesTheViewOfTheDJAppIsAmongItsKeys(t *testing.T) {
	t.Parallel()
	_, keys, _ := mesh.ViewOf(djApp(), mesh.NodeKey("m", "dj"), mesh.Profile{})
	for _, want := range []mesh.Key{
		mesh.MeshKey("m"), mesh.NodeKey("m", "dj"), mesh.NodeKey("m", "jazz-v1"), mesh.VirtualServiceKey("m", "jazz.prod.svc.cluster.local"), mesh.RouterKey("m", "jazz-router"),
		mesh.RouteKey("m", "jazz-router", "").List(), mesh.ServiceKey("prod", "jazz"),
	} {
		if !slices.Contains(keys, want) {
			t.Errorf("%s is not among the keys", want)
		}
	}
	if slices.Contains(keys, mesh.NodeKey("m", "other")) {
		t.Error("a node that dj cannot reach is among the keys")
	}
}
