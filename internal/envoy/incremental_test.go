// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/test/simulate"
)

func TestAWeightChangeTouchesOneRouteConfiguration(t *testing.T) {
	t.Parallel()
	s := canaries(5)
	var i envoy.Incremental
	first, _ := i.Build(viewOf(t, s))
	reweigh(s, 2, 50)
	second, _ := i.Build(viewOf(t, s))

	if got := fresh(first, second); !slices.Equal(got, []string{"rds_egress_http_8080"}) {
		t.Errorf("made anew: %v", got)
	}
}

func TestAnEqualViewIsTakenOverWhole(t *testing.T) {
	t.Parallel()
	var i envoy.Incremental
	first, _ := i.Build(viewOf(t, canaries(3)))
	second, _ := i.Build(viewOf(t, canaries(3)))
	if got := fresh(first, second); len(got) > 0 {
		t.Errorf("made anew: %v", got)
	}
}

// TestStepsGiveWhatBuildGives takes random steps and compares with a build from nothing after each.
func TestStepsGiveWhatBuildGives(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 0))
			s := canaries(4)
			var i envoy.Incremental
			for step := range 50 {
				did := mutate(s, random)
				v := viewOf(t, s)
				want, wantFindings := envoy.Build(v)
				got, gotFindings := i.Build(v)
				if !slices.EqualFunc(all(want), all(got), sameResource) {
					t.Fatalf("step %d, %s (-whole +step by step):\n%s", step, did, cmp.Diff(want, got, protocmp.Transform()))
				}
				if diff := cmp.Diff(wantFindings, gotFindings); diff != "" {
					t.Fatalf("step %d, %s (-whole +step by step):\n%s", step, did, diff)
				}
			}
		})
	}
}

// mutate changes one thing in a scene of canaries and says what.
func mutate(s *simulate.Scene, random *rand.Rand) string {
	service := slices.Sorted(maps.Keys(s.VirtualServices))[random.IntN(len(s.VirtualServices))]
	router := s.VirtualServices[service].Provider.VirtualRouter.VirtualRouterName
	node := slices.Sorted(maps.Keys(s.VirtualNodes))[random.IntN(len(s.VirtualNodes))]
	r := s.VirtualRouters[router]
	n := s.VirtualNodes[node]
	caller := s.VirtualNodes[s.Proxy]
	route := *r.Routes[0].HTTPRoute
	did := ""
	switch random.IntN(12) {
	case 0:
		did = "weight"
		route.Action.WeightedTargets = slices.Clone(route.Action.WeightedTargets)
		route.Action.WeightedTargets[0].Weight = random.Int32N(3) * 10
		r.Routes = []simulate.Route{{Name: "all", RouteSpec: mesh.RouteSpec{HTTPRoute: &route}}}
	case 1:
		did = "retry policy"
		route.RetryPolicy = &mesh.RetryPolicy{MaxRetries: random.Int64N(4), PerRetryTimeout: &mesh.Duration{Value: 1, Unit: mesh.Seconds}, HTTPRetryEvents: []string{"server-error"}}
		r.Routes = []simulate.Route{{Name: "all", RouteSpec: mesh.RouteSpec{HTTPRoute: &route}}}
	case 2:
		did = "no retry policy"
		route.RetryPolicy = nil
		r.Routes = []simulate.Route{{Name: "all", RouteSpec: mesh.RouteSpec{HTTPRoute: &route}}}
	case 3:
		did = "target port"
		route.Action.WeightedTargets = slices.Clone(route.Action.WeightedTargets)
		route.Action.WeightedTargets[0].VirtualNode = slices.Sorted(maps.Keys(s.VirtualNodes))[random.IntN(len(s.VirtualNodes))]
		r.Routes = []simulate.Route{{Name: "all", RouteSpec: mesh.RouteSpec{HTTPRoute: &route}}}
	case 4:
		did = "health check"
		n.Listeners = slices.Clone(n.Listeners)
		n.Listeners[0].HealthCheck = &mesh.HealthCheckPolicy{HealthyThreshold: 2 + random.Int32N(2), UnhealthyThreshold: 2, IntervalMillis: 5000, TimeoutMillis: 2000, Path: "/ping", Protocol: mesh.ProtocolHTTP}
	case 5:
		did = "hostname"
		n.ServiceDiscovery = &mesh.ServiceDiscovery{DNS: &mesh.DNSServiceDiscovery{Hostname: fmt.Sprintf("h%d.example.com", random.IntN(3))}}
	case 6:
		did = "router port"
		r.Listeners = []mesh.VirtualRouterListener{{PortMapping: mesh.PortMapping{Port: 8080 + random.Int32N(2), Protocol: mesh.ProtocolHTTP}}}
	case 7:
		did = "protocol of a node"
		n.Listeners = []mesh.Listener{{PortMapping: mesh.PortMapping{Port: 8080, Protocol: []mesh.Protocol{mesh.ProtocolHTTP, mesh.ProtocolHTTP2, mesh.ProtocolTCP}[random.IntN(3)]}}}
	case 8:
		did = "backend removed, others added"
		caller.Backends = nil
		for name := range s.VirtualServices {
			if name != service {
				caller.Backends = append(caller.Backends, mesh.Backend{VirtualService: &mesh.VirtualServiceBackend{VirtualServiceName: name}})
			}
		}
	case 9:
		did = "egress filter"
		s.Mesh.EgressFilter = &mesh.EgressFilter{Type: []mesh.EgressFilterType{mesh.EgressAllowAll, mesh.EgressDropAll}[random.IntN(2)]}
	case 10:
		did = "tcp"
		r.Listeners = []mesh.VirtualRouterListener{{PortMapping: mesh.PortMapping{Port: 8080 + random.Int32N(2), Protocol: mesh.ProtocolTCP}}}
		r.Routes = []simulate.Route{{Name: "all", RouteSpec: mesh.RouteSpec{HTTPRoute: &route}}, {Name: "tcp", RouteSpec: mesh.RouteSpec{TCPRoute: &mesh.TCPRoute{Action: route.Action}}}}
	case 11:
		did = "logging"
		caller.Logging = &mesh.Logging{AccessLog: &mesh.AccessLog{File: &mesh.FileAccessLog{Path: fmt.Sprintf("/dev/std%d", random.IntN(2))}}}
	}
	s.VirtualRouters[router] = r
	s.VirtualNodes[node] = n
	if node != s.Proxy || did == "backend removed, others added" || did == "logging" {
		s.VirtualNodes[s.Proxy] = caller
	}
	return did
}

// reweigh gives the first target of a canary another weight.
func reweigh(s *simulate.Scene, service int, weight int32) {
	name := fmt.Sprintf("svc-%03d_default", service)
	r := s.VirtualRouters[name]
	route := *r.Routes[0].HTTPRoute
	route.Action.WeightedTargets = slices.Clone(route.Action.WeightedTargets)
	route.Action.WeightedTargets[0].Weight = weight
	r.Routes = []simulate.Route{{Name: "all", RouteSpec: mesh.RouteSpec{HTTPRoute: &route}}}
	s.VirtualRouters[name] = r
}

// fresh names the resources of second whose message is not one of first.
func fresh(first, second envoy.Resources) []string {
	old := map[proto.Message]bool{}
	for _, r := range all(first) {
		old[r.Message] = true
	}
	var out []string
	for _, r := range all(second) {
		if !old[r.Message] {
			out = append(out, r.Name)
		}
	}
	return out
}

func all(r envoy.Resources) []envoy.Resource {
	return slices.Concat(r.Clusters, r.Listeners, r.Routes)
}

func sameResource(x, y envoy.Resource) bool {
	return x.Name == y.Name && x.Endpoints == y.Endpoints && x.Warms == y.Warms && slices.Equal(x.Needs, y.Needs) && slices.Equal(x.Origins, y.Origins) && proto.Equal(x.Message, y.Message)
}

func viewOf(tb testing.TB, s *simulate.Scene) *mesh.View {
	tb.Helper()
	v, _, err := s.View()
	if err != nil {
		tb.Fatal(err)
	}
	return v
}

func BenchmarkWeightChange(b *testing.B) {
	for _, n := range []int{5, 10} {
		s := canaries(n)
		views := []*mesh.View{viewOf(b, s), nil}
		reweigh(s, 2, 50)
		views[1] = viewOf(b, s)
		b.Run(fmt.Sprintf("%d backends", n), func(b *testing.B) {
			b.ReportAllocs()
			var inc envoy.Incremental
			for i := 0; b.Loop(); i++ {
				inc.Build(views[i%2])
			}
		})
	}
}
