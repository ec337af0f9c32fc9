// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package feature_test

import (
	"strings"
	"testing"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/anypb"
)

// poison makes a proxy refuse routes with the prefix /poison.
func poison(kind, _ string, body *anypb.Any) string {
	rc := new(routev3.RouteConfiguration)
	if kind != rds || body.UnmarshalTo(rc) != nil {
		return ""
	}
	for _, host := range rc.GetVirtualHosts() {
		for _, r := range host.GetRoutes() {
			if strings.HasPrefix(r.GetMatch().GetPrefix(), "/poison") {
				return "route: /poison is not to my taste"
			}
		}
	}
	return ""
}

func rejected(list []finding) []finding {
	var found []finding
	for _, f := range list {
		if f.Reason == "Rejected" {
			found = append(found, f)
		}
	}
	return found
}

func TestARefusalIsHeldAgainstItsObjectsUntilAGoodChangeHealsIt(t *testing.T) {
	t.Parallel()
	each(t, func(w *world, via wire) {
		t := w.t
		p := settled(t, w, via)
		p.refuse = poison
		before := p.routes()

		w.write("21-router.yaml", router(to("bad", "/poison"), to("all", "/")))
		p.await("the refused routes", func() bool { return len(p.log) > 0 })
		w.eventually("the refusal is a finding", func() bool { return len(rejected(w.findings())) > 0 })
		blamed := map[string]bool{}
		for _, f := range rejected(w.findings()) {
			blamed[f.Object] = true
			if !strings.Contains(f.Message, "not to my taste") {
				t.Errorf("the finding does not say what the proxy said: %v", f)
			}
		}
		if !blamed["VirtualRouter shop/api"] {
			t.Errorf("blamed: %v, want the router among them", blamed)
		}
		if blamed["VirtualNode shop/api-v2"] {
			t.Errorf("blamed: %v, but api-v2 is in no route", blamed)
		}
		if diff := cmp.Diff(before.String(), p.routes().String()); diff != "" {
			t.Errorf("the proxy lost its routes: %s", diff)
		}
		got := beat(t, p)
		if n := strings.Count(strings.Join(got, ","), "!"+apiRoutes); n != 1 {
			t.Errorf("the refused routes were sent %d times: %v", n, got)
		}

		w.write("21-router.yaml", router(to("good", "/good"), to("all", "/")))
		p.await("the good routes", func() bool { return len(p.log) > 0 })
		w.eventually("the finding has gone", func() bool { return len(rejected(w.findings())) == 0 })
		if got := len(p.routes().GetVirtualHosts()); got == 0 {
			t.Error("no routes after the good change")
		}
	})
}

func TestARefusalHarmsNoOtherResource(t *testing.T) {
	t.Parallel()
	w := newWorld(t, base())
	p := settled(t, w, new(delta))
	p.refuse = poison
	w.write("21-router.yaml", router(to("bad", "/poison"), to("all", "/")))
	p.await("the refused routes", func() bool { return len(p.log) > 0 })
	beat(t, p)
	w.write("40-endpoints.yaml", docs(endpoints("web", "10.1.0.1"), endpoints("api-v1", "10.1.1.1", "10.1.1.9"), endpoints("api-v2", "10.1.2.1")))
	p.await("endpoints after a refusal of routes", func() bool { return len(p.log) > 0 && p.log[0] == "EDS ~"+v1 })
}

// TestANewProxyGetsTheLastRoutesThatAnyProxyTook saves a restarted pod from what its siblings refuse.
func TestANewProxyGetsTheLastRoutesThatAnyProxyTook(t *testing.T) {
	t.Parallel()
	w := newWorld(t, base())
	p := settled(t, w, new(delta))
	p.refuse = poison
	w.write("21-router.yaml", router(to("bad", "/poison"), to("all", "/")))
	w.eventually("the refusal is a finding", func() bool { return len(rejected(w.findings())) > 0 })
	fresh := newProxy(w, web, new(delta))
	fresh.refuse = poison
	fresh.connect()
	fresh.settle()
	if diff := cmp.Diff(p.routes().String(), fresh.routes().String()); diff != "" {
		t.Errorf("the new proxy's routes differ from those that work:\n%s", diff)
	}
}
