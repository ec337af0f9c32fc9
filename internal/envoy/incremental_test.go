// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/netip"
	"runtime"
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
	v := viewOf(t, canaries(3))
	first, _ := i.Build(v)
	same := *v
	second, _ := i.Build(&same)
	if got := fresh(first, second); len(got) > 0 {
		t.Errorf("made anew: %v", got)
	}
}

// TestWhatIsReleasedIsTakenOver releases the messages after each step: what is taken over is known by its address, and what is new has its encoding.
func TestWhatIsReleasedIsTakenOver(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 3))
	s := canaries(4)
	var i envoy.Incremental
	encoded := map[*envoy.Resource][]byte{}
	released := 0
	for step := range 60 {
		did := mutate(s, random)
		v := viewOf(t, s)
		want, _ := envoy.Build(v)
		made, _ := i.Build(v)
		now := map[*envoy.Resource][]byte{}
		for n, r := range all(made) {
			now[r] = encoded[r]
			if r.Message == nil {
				released++
			}
			if now[r] == nil {
				pieces, err := r.Encode()
				if err != nil {
					t.Fatalf("step %d, %s: %v", step, did, err)
				}
				now[r] = bytes.Join(pieces, nil)
			}
			if !bytes.Equal(now[r], encode(t, all(want)[n].Message)) {
				t.Fatalf("step %d, %s: %s has other bytes", step, did, r.Name)
			}
		}
		encoded = now
		i.Release()
	}
	if released == 0 {
		t.Error("nothing was released and taken over")
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
					t.Fatalf("step %d, %s (-whole +step by step):\n%s", step, did, cmp.Diff(messages(want), messages(got), protocmp.Transform()))
				}
				if diff := cmp.Diff(wantFindings, gotFindings); diff != "" {
					t.Fatalf("step %d, %s (-whole +step by step):\n%s", step, did, diff)
				}
			}
		})
	}
}

// TestGroupsThatShareParts takes random steps with Views that have parts in common and differ in what surrounds them, and compares each with a build from nothing.
func TestGroupsThatShareParts(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			random := rand.New(rand.NewPCG(seed, 1))
			s := canaries(4)
			parts := new(envoy.Parts)
			groups := map[string]*envoy.Incremental{}
			for step := range 40 {
				did := mutate(s, random)
				for name, v := range relatives(viewOf(t, s), random) {
					if groups[name] == nil {
						groups[name] = &envoy.Incremental{Parts: parts}
					}
					want, wantFindings := envoy.Build(v)
					got, gotFindings := groups[name].Build(v)
					if !slices.EqualFunc(all(want), all(got), sameResource) {
						t.Fatalf("step %d, %s, %s (-alone +shared):\n%s", step, did, name, cmp.Diff(messages(want), messages(got), protocmp.Transform()))
					}
					if diff := cmp.Diff(wantFindings, gotFindings); diff != "" {
						t.Fatalf("step %d, %s, %s (-alone +shared):\n%s", step, did, name, diff)
					}
				}
				if random.IntN(4) == 0 {
					delete(groups, "fewer")
					runtime.GC()
				}
			}
		})
	}
}

// relatives are Views that share the parts of v.
func relatives(v *mesh.View, random *rand.Rand) map[string]*mesh.View {
	out := map[string]*mesh.View{"first": v}
	add := func(name string, change func(*mesh.View)) {
		r := *v
		r.Services = slices.Clone(v.Services)
		change(&r)
		out[name] = &r
	}
	add("second", func(*mesh.View) {})
	add("fewer", func(v *mesh.View) {
		v.Services = slices.DeleteFunc(v.Services, func(mesh.ServiceView) bool { return random.IntN(2) == 0 })
	})
	add("other proxy", func(v *mesh.View) { v.Proxy.Name = "other" })
	add("stock", func(v *mesh.View) { v.Profile.StockImage = true })
	add("metrics", func(v *mesh.View) { v.Profile.MetricsExtension = true })
	add("IPv6", func(v *mesh.View) { v.Profile.IPv6 = true })
	add("open", func(v *mesh.View) { v.Egress = mesh.EgressAllowAll })
	add("own policies", func(v *mesh.View) {
		for i := range v.Services {
			v.Services[i].OwnPolicy = random.IntN(2) == 0
		}
	})
	add("one name", func(v *mesh.View) {
		for i := range v.Services {
			v.Services[i].Name = "s"
		}
	})
	add("addresses", func(v *mesh.View) {
		for i := range v.Services {
			v.Services[i].Addresses = []netip.Addr{netip.AddrFrom4([4]byte{10, 0, 0, byte(random.IntN(4))})}
		}
	})
	add("a domain is taken", func(v *mesh.View) {
		first := v.Services[0]
		first.Name += ":8080"
		v.Services = slices.Insert(v.Services, 0, first)
	})
	add("a node is gone", func(v *mesh.View) { v.Nodes = v.Nodes[min(1, len(v.Nodes)):] })
	return out
}

// TestAClusterNameThatOneProxySeesTwice has a target whose cluster stands for one proxy, and has its name taken by another node for the other.
func TestAClusterNameThatOneProxySeesTwice(t *testing.T) {
	t.Parallel()
	one := oneService(httpRoute("r", mesh.HTTPRouteMatch{Prefix: new("/")}))
	target := one.Services[0].Ports[0].Routes[0].Targets[0]
	one.Services[0].Name, one.Services[0].OwnPolicy = "http_8080", true
	two := *one
	node := one.Nodes[0]
	node.Name = target.Node + "_http_8080"
	taker := mesh.ServiceView{Name: "a", Ports: []mesh.ServicePortView{{Port: 8080, Protocol: mesh.ProtocolHTTP, Routes: []mesh.RouteView{{
		HTTP: &mesh.HTTPRouteMatch{Prefix: new("/")}, Targets: []mesh.TargetView{{Node: node.Name, Port: target.Port, Weight: 1}},
	}}}}}
	two.Services = append([]mesh.ServiceView{taker}, one.Services...)
	two.Nodes = append([]mesh.NodeView{node}, one.Nodes...)
	if _, findings := envoy.Build(&two); len(findings) != 1 {
		t.Fatalf("findings %v, want one of the name", findings)
	}
	parts := new(envoy.Parts)
	groups := []envoy.Incremental{{Parts: parts}, {Parts: parts}}
	for range 2 {
		for i, v := range []*mesh.View{one, &two} {
			want, _ := envoy.Build(v)
			if got, _ := groups[i].Build(v); !slices.EqualFunc(all(want), all(got), sameResource) {
				t.Errorf("proxy %d (-alone +shared):\n%s", i, cmp.Diff(messages(want), messages(got), protocmp.Transform()))
			}
		}
	}
}

func messages(made envoy.Resources) map[string]proto.Message {
	out := map[string]proto.Message{}
	for _, r := range all(made) {
		out[r.Name] = r.Message
	}
	return out
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
		n.Listeners[0].HealthCheck = &mesh.HealthCheckPolicy{HealthyThreshold: 2 + random.Int32N(2), UnhealthyThreshold: 2, IntervalMillis: 5000 * random.Int64N(3), TimeoutMillis: 2000, Path: "/ping", Protocol: mesh.ProtocolHTTP}
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
		caller.Logging = &mesh.Logging{AccessLog: &mesh.AccessLog{File: &mesh.FileAccessLog{Path: fmt.Sprintf("/dev/std%d", random.IntN(2)), Format: &mesh.LoggingFormat{Text: []string{"%START_TIME%", "%NONSENSE%"}[random.IntN(2)]}}}}
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

func all(r envoy.Resources) []*envoy.Resource {
	return slices.Concat(r.Clusters, r.Listeners, r.Routes)
}

// sameResource compares messages, and the encodings that are delivered with what the messages marshal to.
func sameResource(x, y *envoy.Resource) bool {
	pieces, err := y.Encode()
	whole, fault := proto.MarshalOptions{Deterministic: true}.Marshal(x.Message)
	return err == nil && fault == nil && bytes.Equal(bytes.Join(pieces, nil), whole) && x.Name == y.Name && x.Endpoints == y.Endpoints && x.Warms == y.Warms && slices.Equal(x.Needs, y.Needs) && slices.Equal(x.Origins, y.Origins) && proto.Equal(x.Message, y.Message)
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
