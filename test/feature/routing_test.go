// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package feature_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
)

// hostRoutes are the routes of the virtual host of api.
func hostRoutes(t *testing.T, p *proxy) []*routev3.Route {
	t.Helper()
	const name = "api.shop.svc.cluster.local"
	for _, host := range p.routes().GetVirtualHosts() {
		if slices.Contains(host.GetDomains(), name) {
			return host.GetRoutes()
		}
	}
	t.Fatalf("no virtual host for %s", name)
	return nil
}

func TestMutualBackendsWorkAndGiveNoFinding(t *testing.T) {
	t.Parallel()
	w := newWorld(t, base())
	w.write("10-web.yaml", docs(webNode("api", "pulse"), provided("web", "web")))
	w.write("20-api.yaml", docs(node("api-v1")+"  backends: [{virtualService: {virtualServiceRef: {name: web}}}]\n", node("api-v2"), routedAPI()))
	one := newProxy(w, web, new(delta))
	one.connect()
	one.settle()
	other := newProxy(w, "mesh/m1/virtualNode/api-v1_shop", new(delta))
	w.eventually("api-v1 reaches web", func() bool {
		if w.t.Failed() {
			return true
		}
		other.disconnect()
		other.connect()
		other.settle()
		return slices.Contains(other.names(cds), "cds_egress_m1_web_shop_http_8080")
	})
	if list := w.findings(); len(list) > 0 {
		t.Errorf("findings: %v", list)
	}
}

func TestTheEgressFilterIsFlippedWithoutATouchOfTheListenersOwnFields(t *testing.T) {
	t.Parallel()
	each(t, func(w *world, via wire) {
		t := w.t
		p := settled(t, w, via)
		pass := "cds_egress_m1_mesh-allow-all"
		w.write("00-mesh.yaml", meshOf("DROP_ALL"))
		p.await("the cluster that passes all has gone", func() bool { return p.held[cds][pass].body == nil })
		closed := strings.Join(beat(t, p), ", ")
		if !strings.HasSuffix(closed, "CDS -"+pass) {
			t.Errorf("the cluster must go last, after all that leads to it: %s", closed)
		}
		w.write("00-mesh.yaml", meshOf("ALLOW_ALL"))
		p.await("the cluster that passes all is back", func() bool { return p.held[cds][pass].body != nil })
		if opened := beat(t, p); len(opened) == 0 || opened[0] != "CDS +"+pass {
			t.Errorf("the cluster must come first: %v", opened)
		}
	})
}

func TestARemovedRouteStopsAtOnceAndTheOthersStay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, base())
	w.write("21-router.yaml", router(to("a", "/a"), to("b", "/b"), to("c", "/c")))
	p := newProxy(w, web, new(delta))
	p.connect()
	p.settle()
	prefixes := func() string {
		var list []string
		for _, r := range hostRoutes(t, p) {
			if r.GetRoute() != nil {
				list = append(list, r.GetMatch().GetPrefix())
			}
		}
		return strings.Join(list, " ")
	}
	w.eventually("three routes", func() bool { return prefixes() == "/a /b /c" })
	w.write("21-router.yaml", router(to("a", "/a"), to("c", "/c")))
	w.eventually("two routes", func() bool { return prefixes() == "/a /c" })
}

func TestTheFirstRouteOfAnEmptyRouterIsServed(t *testing.T) {
	t.Parallel()
	each(t, func(w *world, via wire) {
		t := w.t
		w.write("21-router.yaml", router())
		p := newProxy(w, web, via)
		p.connect()
		p.settle()
		p.await("the empty router", func() bool { return p.held[cds][v1].body == nil && p.held[cds][v2].body == nil })
		beat(t, p)
		for _, r := range hostRoutes(t, p) {
			if r.GetDirectResponse().GetStatus() != 503 {
				t.Errorf("an empty router answers with %v, want 503", r)
			}
		}
		w.write("21-router.yaml", router(to("first", "/")))
		p.await("the routes", func() bool { return len(p.log) >= 3 })
		want := []string{"CDS +" + v1, "EDS +" + v1, "RDS ~" + apiRoutes}
		if diff := cmp.Diff(want, beat(t, p)); diff != "" {
			t.Errorf("the proxy got (-want +got):\n%s", diff)
		}
	})
}

func TestWeightsThatAreAllZeroAnswer503AndSaySo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, base())
	p := settled(t, w, new(delta))
	w.write("21-router.yaml", split(0, 0))
	p.await("the routes", func() bool { return len(p.log) > 0 })
	beat(t, p)
	routes := hostRoutes(t, p)
	if len(routes) == 0 || routes[0].GetDirectResponse().GetStatus() != 503 {
		t.Errorf("routes: %v, want a 503", routes)
	}
	found := false
	for _, f := range w.findings() {
		found = found || f.Reason == "NoTraffic" && f.Object == "VirtualRouter shop/api"
	}
	if !found {
		t.Errorf("no finding says that nothing is served: %v", w.findings())
	}
}

func TestWeightedTargetsOnDifferentPortsBothGetTheirShare(t *testing.T) {
	t.Parallel()
	w := newWorld(t, base())
	other := strings.ReplaceAll(node("api-v2"), "port: 8080", "port: 8081")
	w.write("20-api.yaml", docs(node("api-v1"), other, routedAPI()))
	w.write("21-router.yaml", split(50, 50))
	p := newProxy(w, web, new(delta))
	p.connect()
	p.settle()
	want := map[string]uint32{v1: 50, "cds_egress_m1_api-v2_shop_http_8081": 50}
	w.eventually("both targets", func() bool {
		got := map[string]uint32{}
		for _, r := range hostRoutes(t, p) {
			for _, c := range r.GetRoute().GetWeightedClusters().GetClusters() {
				got[c.GetName()] = c.GetWeight().GetValue()
			}
		}
		return cmp.Equal(want, got)
	})
}

func TestARouterWithTenThousandRoutesIsServedAndChangedInOneResponse(t *testing.T) {
	t.Parallel()
	const many = 10_000
	routes := make([]string, 0, many)
	for i := range many {
		routes = append(routes, to(fmt.Sprintf("r%05d", i), fmt.Sprintf("/r/%05d", i)))
	}
	w := newWorld(t, base())
	w.write("21-router.yaml", router(routes...))
	p := newProxy(w, web, new(delta))
	p.connect()
	p.settle()
	w.eventually("all routes", func() bool { return len(hostRoutes(t, p)) >= many })
	p.await("the cluster that no route needs has gone", func() bool { return p.held[cds][v2].body == nil })
	p.since()
	routes[many/2] = to("r05000", "/changed")
	w.write("21-router.yaml", router(routes...))
	p.await("the change", func() bool { return len(p.log) > 0 })
	if diff := cmp.Diff([]string{"RDS ~" + apiRoutes}, beat(t, p)); diff != "" {
		t.Errorf("the proxy got (-want +got):\n%s", diff)
	}
	if bad := w.errors(); len(bad) > 0 {
		t.Errorf("findings: %v", bad[:min(len(bad), 5)])
	}
}

// TestNoClusterLeadsToTheProxysOwnMachineButThoseOfItsApplication guards the administration of proxies and the credentials that clouds hand out.
func TestNoClusterLeadsToTheProxysOwnMachineButThoseOfItsApplication(t *testing.T) {
	t.Parallel()
	manifests := base()
	backends := []string{"api", "pulse"}
	for i, host := range []string{"localhost", "127.0.0.1", "127.1", "'::1'", "169.254.169.254", "0.0.0.0", "admin.localhost."} {
		name := fmt.Sprint("evil", i)
		backends = append(backends, name)
		manifests["9"+name+".yaml"] = docs(strings.Replace(node(name), name+".shop.svc.cluster.local", host, 1), provided(name, name))
	}
	manifests["10-web.yaml"] = webNode(backends...)
	w := newWorld(t, manifests)
	p := newProxy(w, web, new(delta))
	p.connect()
	p.settle()
	p.mu.Lock()
	defer p.mu.Unlock()
	for name, r := range p.held[cds] {
		c := new(clusterv3.Cluster)
		if err := r.body.UnmarshalTo(c); err != nil {
			t.Fatal(err)
		}
		for _, locality := range c.GetLoadAssignment().GetEndpoints() {
			for _, e := range locality.GetLbEndpoints() {
				if !strings.HasPrefix(name, "cds_ingress_") {
					t.Errorf("%s leads to %s", name, e.GetEndpoint().GetAddress().GetSocketAddress().GetAddress())
				}
			}
		}
	}
	if n := len(p.held[cds]); n < len(backends) {
		t.Errorf("only %d clusters", n)
	}
}
