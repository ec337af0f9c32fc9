// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package feature_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// settled is a proxy of web with its first configuration.
func settled(t *testing.T, w *world, via wire) *proxy {
	t.Helper()
	p := newProxy(w, web, via)
	p.connect()
	p.settle()
	p.since()
	return p
}

// each runs a test with both protocols, each against a control plane of its own.
func each(t *testing.T, test func(w *world, via wire)) {
	t.Helper()
	for _, name := range wireNames() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(newWorld(t, base()), wires()[name]())
		})
	}
}

func TestAFirstConfigurationIsWhatTheBackendsReachAndNoMore(t *testing.T) {
	t.Parallel()
	each(t, func(w *world, via wire) {
		t := w.t
		w.write("90-stranger.yaml", docs(node("stranger"), provided("stranger", "stranger")))
		p := newProxy(w, web, via)
		p.connect()
		p.settle()
		got := map[string][]string{}
		for kind := range maps.Keys(urls) {
			got[kind] = p.names(kind)
		}
		want := map[string][]string{
			cds: {"cds_egress_m1_amazonaws", v1, v2, "cds_egress_m1_mesh-allow-all", pulse, "cds_ingress_m1_web_shop_http_8080"},
			eds: {v1, v2, pulse},
			lds: {outbound, inbound},
			rds: {apiRoutes, ownRoutes},
		}
		for _, list := range want {
			slices.Sort(list)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the proxy holds (-want +got):\n%s", diff)
		}
		if bad := w.errors(); len(bad) > 0 {
			t.Errorf("findings in a mesh without fault: %v", bad)
		}
	})
}

// TestAChangeSendsWhatItChangesAndNothingElse holds each kind of change against the exact list of responses that a connected proxy gets.
func TestAChangeSendsWhatItChangesAndNothingElse(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(w *world)
		want   []string
	}{
		"a weight": {
			change: func(w *world) { w.write("21-router.yaml", split(50, 50)) },
			want:   []string{"RDS ~" + apiRoutes},
		},
		"an endpoint": {
			change: func(w *world) {
				w.write("40-endpoints.yaml", docs(endpoints("web", "10.1.0.1"), endpoints("api-v1", "10.1.1.1", "10.1.1.2"), endpoints("api-v2", "10.1.2.1")))
			},
			want: []string{"EDS ~" + v1},
		},
		"an object that no backend of the proxy reaches": {
			change: func(w *world) { w.write("90-stranger.yaml", docs(node("stranger"), provided("stranger", "stranger"))) },
		},
		"a comment in a manifest": {
			change: func(w *world) { w.write("21-router.yaml", "# weights of the canary\n"+split(90, 10)) },
		},
		"a route more": {
			change: func(w *world) { w.write("21-router.yaml", router(to("one", "/one"), to("all", "/"))) },
			want:   []string{"RDS ~" + apiRoutes, "CDS -" + v2},
		},
		"a backend more": {
			change: func(w *world) {
				w.write("31-late.yaml", docs(node("late"), provided("late", "late"), endpoints("late", "10.1.4.1")))
				w.write("10-web.yaml", webNode("api", "pulse", "late"))
			},
			want: []string{"CDS +cds_egress_m1_late_shop_http_8080", "EDS +cds_egress_m1_late_shop_http_8080", "RDS ~" + apiRoutes},
		},
		"a backend less": {
			change: func(w *world) { w.write("10-web.yaml", webNode("pulse")) },
			want:   []string{"RDS ~" + apiRoutes, "CDS -" + v1 + " -" + v2},
		},
		"a health check, which changes a cluster": {
			change: func(w *world) {
				w.write("20-api.yaml", docs(checkedNode("api-v1"), node("api-v2"), routedAPI()))
			},
			want: []string{"CDS ~" + v1, "EDS =" + v1},
		},
	}
	for _, protocol := range wireNames() {
		for name, test := range tests {
			t.Run(name+" over "+protocol, func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, base())
				p := settled(t, w, wires()[protocol]())
				test.change(w)
				if len(test.want) > 0 {
					p.await("the change", func() bool { return len(p.log) >= len(test.want) })
				}
				if diff := cmp.Diff(test.want, beat(t, p)); diff != "" {
					t.Errorf("the proxy got (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// checkedNode is node with an active health check.
func checkedNode(name string) string {
	return `apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: ` + name + `, namespace: shop}
spec:
  podSelector: {matchLabels: {app: ` + name + `}}
  listeners:
    - portMapping: {port: 8080, protocol: http}
      healthCheck: {protocol: http, path: /ping, healthyThreshold: 2, unhealthyThreshold: 2, timeoutMillis: 2000, intervalMillis: 5000}
  serviceDiscovery: {dns: {hostname: ` + name + `.shop.svc.cluster.local}}
`
}

func TestARemovedNodeEndsItsProxysStreamAndANewOneServesAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world, via wire) {
		t := w.t
		p := settled(t, w, via)
		w.remove("10-web.yaml")
		wantInvalid(t, p.end(), "web_shop")
		w.write("10-web.yaml", webNode("api", "pulse"))
		w.eventually("the node is back", func() bool {
			p.connect()
			p.await("an answer", func() bool { return !p.live || len(p.held[cds]) > 0 && p.wants[rds] != nil })
			p.mu.Lock()
			defer p.mu.Unlock()
			return p.live
		})
	})
}
