// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy_test

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/test/simulate"
)

// oneService is a View of a proxy that calls service "api" on port 8080, whose routes lead to node "a".
func oneService(routes ...mesh.RouteView) *mesh.View {
	return &mesh.View{
		Proxy: mesh.NodeKey("m", "web"), Egress: mesh.EgressAllowAll,
		Services: []mesh.ServiceView{{Name: "api", Ports: []mesh.ServicePortView{{Port: 8080, Protocol: mesh.ProtocolHTTP, Routes: routes}}}},
		Nodes:    []mesh.NodeView{{Name: "a", Listeners: []mesh.NodeListenerView{{Port: 8080, Protocol: mesh.ProtocolHTTP}}, Discovery: mesh.DiscoveryView{Type: mesh.DiscoveryEndpoints}}},
	}
}

func httpRoute(name string, m mesh.HTTPRouteMatch) mesh.RouteView {
	return mesh.RouteView{Route: mesh.RouteKey("m", "api", name), HTTP: &m, Targets: []mesh.TargetView{{Node: "a", Port: 8080, Weight: 1}}}
}

// TestWhatCannotBeTranslatedAnswers503 gives Build what a View should not hold and looks at where requests land.
func TestWhatCannotBeTranslatedAnswers503(t *testing.T) {
	t.Parallel()
	rest := httpRoute("rest", mesh.HTTPRouteMatch{Prefix: new("/")})
	strange := httpRoute("strange", mesh.HTTPRouteMatch{Prefix: new("/x")})
	strange.Targets = []mesh.TargetView{{Node: "nobody", Port: 1, Weight: 1}}
	method := mesh.RouteView{Route: mesh.RouteKey("m", "api", "method"), GRPC: &mesh.GRPCRouteMatch{MethodName: "Get"}, Targets: rest.Targets}
	tests := map[string]struct {
		route    mesh.RouteView
		findings int
		lands    string
		others   string
	}{
		"a route to a node that is not in the View": {strange, 1, "503", "cds_egress_m_a_http_8080:1"},
		"a header that has no name":                 {httpRoute("h", mesh.HTTPRouteMatch{Prefix: new("/x"), Headers: []mesh.HeaderMatch{{}}}), 1, "503", "cds_egress_m_a_http_8080:1"},
		"a header whose match says nothing":         {httpRoute("h", mesh.HTTPRouteMatch{Prefix: new("/x"), Headers: []mesh.HeaderMatch{{Name: "a", Match: &mesh.ValueMatch{}}}}), 1, "503", "cds_egress_m_a_http_8080:1"},
		"an expression that does not compile":       {httpRoute("h", mesh.HTTPRouteMatch{Prefix: new("/x"), Headers: []mesh.HeaderMatch{{Name: "a", Match: &mesh.ValueMatch{Regex: new("([")}}}}), 1, "503", "cds_egress_m_a_http_8080:1"},
		"a path that does not compile takes all":    {httpRoute("h", mesh.HTTPRouteMatch{Path: &mesh.HTTPPathMatch{Regex: new("([")}}), 1, "503", "503"},
		"a gRPC method without a service takes all": {method, 1, "503", "503"},
		"a query parameter that has no name":        {httpRoute("h", mesh.HTTPRouteMatch{Prefix: new("/x"), QueryParameters: []mesh.QueryParameter{{}}}), 1, "503", "cds_egress_m_a_http_8080:1"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, findings := envoy.Build(oneService(tt.route, rest))
			if len(findings) != tt.findings {
				t.Errorf("findings: %v", findings)
			}
			lands(t, made, &simulate.Request{Port: 8080, Host: "api", Path: "/x"}, tt.lands)
			lands(t, made, &simulate.Request{Port: 8080, Host: "api", Path: "/y"}, tt.others)
		})
	}
}

func lands(t *testing.T, made envoy.Resources, r *simulate.Request, want string) {
	t.Helper()
	config, err := simulate.NewConfig(made)
	if err != nil {
		t.Fatal(err)
	}
	got, err := config.Outbound(r)
	if err != nil {
		t.Fatal(err)
	}
	if got.String() != want {
		t.Errorf("%s:%d%s lands at %s, want %s", r.Host, r.Port, r.Path, got, want)
	}
}

func TestWeightsAboveEnvoysLimitKeepTheirProportion(t *testing.T) {
	t.Parallel()
	r := httpRoute("r", mesh.HTTPRouteMatch{Prefix: new("/")})
	r.Targets = nil
	for range 4 {
		r.Targets = append(r.Targets, mesh.TargetView{Node: "a", Port: 8080, Weight: math.MaxInt32})
	}
	made, _ := envoy.Build(oneService(r))
	lands(t, made, &simulate.Request{Port: 8080, Host: "api"}, "cds_egress_m_a_http_8080:4294967292")
}

func TestAnImpossibleHealthCheckCostsItsClusterAlone(t *testing.T) {
	t.Parallel()
	v := oneService(httpRoute("r", mesh.HTTPRouteMatch{Prefix: new("/")}))
	v.Nodes[0].Listeners[0].HealthCheck = &mesh.HealthCheckPolicy{Protocol: mesh.ProtocolHTTP} // no interval
	made, findings := envoy.Build(v)
	if len(findings) != 1 || findings[0].Reason != mesh.ReasonRejected || findings[0].Object.Name != "a" {
		t.Errorf("findings: %v", findings)
	}
	lands(t, made, &simulate.Request{Port: 8080, Host: "api"}, "503")
	lands(t, made, &simulate.Request{Port: 8080, Host: "other"}, "cds_egress_m_mesh-allow-all:1")
}

func TestTwoNodesWithOneClusterNameAreKeptApart(t *testing.T) {
	t.Parallel()
	v := oneService(httpRoute("r", mesh.HTTPRouteMatch{Prefix: new("/")}))
	// A policy of its own makes the service's name part of the name of node "a"'s cluster, which then is that of another node.
	v.Services[0].Name, v.Services[0].OwnPolicy = "x_http_80", true
	v.Nodes = append(v.Nodes, mesh.NodeView{Name: "a_http_8080_x", Listeners: []mesh.NodeListenerView{{Port: 80, Protocol: mesh.ProtocolHTTP}}})
	other := httpRoute("r", mesh.HTTPRouteMatch{Prefix: new("/")})
	other.Targets = []mesh.TargetView{{Node: "a_http_8080_x", Port: 80, Weight: 1}}
	v.Services = append(v.Services, mesh.ServiceView{Name: "y", Ports: []mesh.ServicePortView{{Port: 8080, Protocol: mesh.ProtocolHTTP, Routes: []mesh.RouteView{other}}}})
	made, findings := envoy.Build(v)
	if len(findings) != 1 || findings[0].Reason != mesh.ReasonRejected {
		t.Errorf("findings: %v", findings)
	}
	lands(t, made, &simulate.Request{Port: 8080, Host: "x_http_80"}, "cds_egress_m_a_http_8080_x_http_80:1")
	lands(t, made, &simulate.Request{Port: 8080, Host: "y"}, "503")
}

func TestResourcesSayWhatTheyNeedAndWhereTheyComeFrom(t *testing.T) {
	t.Parallel()
	v := oneService(httpRoute("r", mesh.HTTPRouteMatch{Prefix: new("/")}))
	v.Nodes[0].Listeners[0].HealthCheck = &mesh.HealthCheckPolicy{Protocol: mesh.ProtocolTCP, IntervalMillis: 5000, TimeoutMillis: 2000, HealthyThreshold: 2, UnhealthyThreshold: 2}
	made, _ := envoy.Build(v)
	type facts struct {
		Endpoints string
		Warms     bool
		Needs     []string
		Origins   []mesh.Key
	}
	got := map[string]facts{}
	for _, r := range all(made) {
		got[r.Name] = facts{r.Endpoints, r.Warms, r.Needs, r.Origins}
	}
	want := map[string]facts{
		"cds_egress_m_a_http_8080":    {Endpoints: "cds_egress_m_a_http_8080", Warms: true, Origins: []mesh.Key{mesh.NodeKey("m", "a")}},
		"cds_egress_m_amazonaws":      {Origins: []mesh.Key{mesh.MeshKey("m")}},
		"cds_egress_m_mesh-allow-all": {Origins: []mesh.Key{mesh.MeshKey("m")}},
		"lds_egress_0.0.0.0_15001": {
			Needs:   []string{"cds_egress_m_amazonaws", "cds_egress_m_mesh-allow-all"},
			Origins: []mesh.Key{mesh.NodeKey("m", "web"), mesh.VirtualServiceKey("m", "api")},
		},
		"rds_egress_http_8080": {
			Needs:   []string{"cds_egress_m_a_http_8080", "cds_egress_m_mesh-allow-all"},
			Origins: []mesh.Key{mesh.RouteKey("m", "api", "r"), mesh.VirtualServiceKey("m", "api")},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNamesFollowAppMesh(t *testing.T) {
	t.Parallel()
	got := envoy.EndpointsName(mesh.EndpointSetKey{Mesh: "dj-app", Node: "jazz-v1_prod", Port: 9080, Protocol: mesh.ProtocolHTTP})
	if want := "cds_egress_dj-app_jazz-v1_prod_http_9080"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestFindingsAreShort(t *testing.T) {
	t.Parallel()
	v := oneService(httpRoute(strings.Repeat("n", 1<<20), mesh.HTTPRouteMatch{Prefix: new("/"), Headers: []mesh.HeaderMatch{{Name: "a", Match: &mesh.ValueMatch{Regex: new(strings.Repeat("(", 1<<20))}}}}))
	_, findings := envoy.Build(v)
	for _, f := range findings {
		if n := len(f.Message) + len(f.Object.Name); n > 2000 {
			t.Errorf("a finding of %d bytes", n)
		}
	}
	if len(findings) != 1 {
		t.Errorf("%d findings", len(findings))
	}
}

// TestClustersNameTheEndpointSetsOfTheirView holds translation against the View's own list, by which endpoints are delivered.
func TestClustersNameTheEndpointSetsOfTheirView(t *testing.T) {
	t.Parallel()
	for _, input := range inputs(t) {
		v, sets := view(t, scene(t, input))
		made, _ := envoy.Build(v)
		var want, got []string
		for _, set := range sets {
			want = append(want, envoy.Endpoints(set).Name)
		}
		for _, r := range made.Clusters {
			if r.Endpoints != "" {
				got = append(got, r.Endpoints)
			}
		}
		slices.Sort(want)
		slices.Sort(got)
		if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
			t.Errorf("%s (-view +clusters):\n%s", input, diff)
		}
	}
}

func endpointAddresses(list ...string) []netip.Addr {
	out := make([]netip.Addr, len(list))
	for i, text := range list {
		out[i] = netip.MustParseAddr(text)
	}
	return out
}
