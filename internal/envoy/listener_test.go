// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy_test

import (
	"math/rand/v2"
	"testing"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// shells are listeners without what may change: a change of any other field would drain every connection of the proxy.
func shells(t *testing.T, made envoy.Resources) map[string]proto.Message {
	t.Helper()
	out := map[string]proto.Message{}
	for _, r := range made.Listeners {
		l := proto.CloneOf(as[*listenerv3.Listener](t, r.Message))
		l.FilterChains, l.DefaultFilterChain, l.FilterChainMatcher = nil, nil, nil
		out[r.Name] = l
	}
	return out
}

func TestNoChangeOfAMeshChangesAListenersOwnFields(t *testing.T) {
	t.Parallel()
	s := canaries(4)
	random := rand.New(rand.NewPCG(1, 1))
	first, _ := envoy.Build(viewOf(t, s))
	for range 100 {
		did := mutate(s, random)
		next, _ := envoy.Build(viewOf(t, s))
		if diff := cmp.Diff(shells(t, first), shells(t, next), protocmp.Transform()); diff != "" {
			t.Fatalf("after a change of %s (-before +after):\n%s", did, diff)
		}
	}
}

func chains(t *testing.T, made envoy.Resources) map[string]*listenerv3.FilterChain {
	t.Helper()
	out := map[string]*listenerv3.FilterChain{}
	for _, r := range made.Listeners {
		for _, c := range as[*listenerv3.Listener](t, r.Message).GetFilterChains() {
			out[r.Name+" "+c.GetName()] = c
		}
	}
	return out
}

// TestANewServiceLeavesOtherChainsAlone holds the chains, on which connections live, against services that come: on the same port, on another, for TCP.
func TestANewServiceLeavesOtherChainsAlone(t *testing.T) {
	t.Parallel()
	v := oneService(httpRoute("r", mesh.HTTPRouteMatch{Prefix: new("/")}))
	before, _ := envoy.Build(v)
	v.Services = append(v.Services,
		mesh.ServiceView{Name: "b", Ports: []mesh.ServicePortView{{Port: 8080, Protocol: mesh.ProtocolHTTP2}, {Port: 9090, Protocol: mesh.ProtocolHTTP}}},
		mesh.ServiceView{Name: "c", Addresses: endpointAddresses("10.0.0.1"), Ports: []mesh.ServicePortView{{Port: 8080, Protocol: mesh.ProtocolTCP}}},
	)
	after, _ := envoy.Build(v)
	now := chains(t, after)
	for name, chain := range chains(t, before) {
		if !proto.Equal(chain, now[name]) {
			t.Errorf("%s has changed", name)
		}
	}
	for _, name := range []string{"lds_egress_0.0.0.0_15001 http_9090", "lds_egress_0.0.0.0_15001 tcp_c_8080"} {
		if now[name] == nil {
			t.Errorf("no %s", name)
		}
	}
}
