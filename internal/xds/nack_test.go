// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds_test

import (
	"slices"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/xds"
)

func names(rs []*xds.Resource) []string {
	var out []string
	for _, r := range rs {
		out = append(out, r.Name())
	}
	slices.Sort(out)
	return out
}

// nacks waits for so many.
func (w *world) nacks(n int) []xds.Nack {
	w.t.Helper()
	eventually(w.t, "the nacks", func() bool { return see(w.rec, func(r *record) bool { return len(r.nacks) >= n }) })
	return see(w.rec, func(r *record) []xds.Nack { return slices.Clone(r.nacks) })
}

func TestNackOfNamedResources(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.give(shop(t)...)
	c := w.connect()
	two := []*xds.Resource{eds(t, "bad", "1"), eds(t, "c1", "2"), eds(t, "worse", "1"), listener(t, "l1", "1"), route(t, "r1", "1", "c1")}
	w.give(two...)
	m := c.next()
	if got := short(m); got != "cds +bad +c1 +worse" {
		t.Fatal(got)
	}
	c.nack(m, "Error adding/updating cluster(s) bad: cluster: no c1 here, worse: neither")
	c.want("eds +c1")
	c.quiet()
	n := w.nacks(1)[0]
	if diff := cmp.Diff([]string{"bad", "worse"}, names(n.Named)); diff != "" || n.Retrying || len(n.Resources) != 3 || n.Group != "a" || n.Proxy.NodeID != "a" {
		t.Errorf("%+v %s", n, diff)
	}
	if n.Named[0].Origin != "object of bad" {
		t.Errorf("origin %v", n.Named[0].Origin)
	}
	if diff := cmp.Diff(map[string]bool{"bad": true, "c1": false, "worse": true}, refused(w, xds.ClusterType)); diff != "" {
		t.Error(diff)
	}

	w.give(two...) // the refused versions are not sent again
	c.quiet()
	w.give(append(two[1:], eds(t, "bad", "mended"))...)
	c.want("cds +bad")
	c.quiet()
	if diff := cmp.Diff(map[string]bool{"bad": false, "c1": false, "worse": true}, refused(w, xds.ClusterType)); diff != "" {
		t.Error(diff)
	}
}

// refused tells for each resource of the only proxy whether it was refused.
func refused(w *world, typeURL string) map[string]bool {
	out := map[string]bool{}
	for _, p := range w.srv.Proxies() {
		for _, typ := range p.Types {
			if typ.TypeURL != typeURL {
				continue
			}
			for _, r := range typ.Resources {
				out[r.Name] = r.Refused != ""
			}
		}
	}
	return out
}

func TestNackThatNamesNothing(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.give(shop(t)...)
	c := w.connect()
	w.give(shop(t, listener(t, "l2", "1"), listener(t, "l3", "1"))...)
	m := c.next()
	if got := short(m); got != "lds +l2 +l3" {
		t.Fatal(got)
	}
	text := `name: "l2": Proto constraint validation failed (ListenerValidationError.Address: value is required)`
	c.nack(m, text)
	m = c.next()
	if got := short(m); got != "lds +l2" {
		t.Fatal(got)
	}
	c.nack(m, text)
	c.want("lds +l3")
	c.quiet()
	n := w.nacks(2)
	if !n[0].Retrying || n[1].Retrying || len(n[1].Resources) != 1 {
		t.Errorf("%+v", n)
	}
	if diff := cmp.Diff(map[string]bool{"l1": false, "l2": true, "l3": false}, refused(w, xds.ListenerType)); diff != "" {
		t.Error(diff)
	}
}

func TestNewProxyGetsTheLastGoodVersion(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	good, bad := route(t, "r1", "1", "c1"), route(t, "r1", "bad", "c1")
	w.give(shop(t)...)
	first := w.connect()
	w.give(eds(t, "c1", "1"), listener(t, "l1", "1"), bad)
	first.nack(first.next(), "Only unique values for domains are permitted. Duplicate entry of domain x in route r1")
	w.nacks(1)
	first.quiet()

	second := w.delta("a/2")
	second.want("cds +c1")
	second.subscribe(xds.EndpointType, "c1")
	second.want("eds +c1")
	second.subscribe(xds.RouteType, "r1")
	m := second.next()
	if diff := cmp.Diff(map[string]string{"r1": good.Version()}, versions(m)); diff != "" {
		t.Errorf("a new proxy (-want +got):\n%s", diff)
	}
	second.ack(m)
	second.quiet()

	// The first comes back with what it has, and gets nothing.
	again := w.delta("a/3")
	again.want("cds +c1")
	again.subscribe(xds.EndpointType, "c1")
	again.want("eds +c1")
	again.send(&discoveryv3.DeltaDiscoveryRequest{
		TypeUrl: xds.RouteType, ResourceNamesSubscribe: []string{"r1"}, InitialResourceVersions: map[string]string{"r1": good.Version()},
	})
	again.quiet()

	// One that already holds the refused version keeps it, and proves that it can be taken: the others get it too.
	other := w.delta("")
	other.send(&discoveryv3.DeltaDiscoveryRequest{
		Node: &corev3.Node{Id: "a/4"}, TypeUrl: xds.RouteType, ResourceNamesSubscribe: []string{"r1"}, InitialResourceVersions: map[string]string{"r1": bad.Version()},
	})
	for _, c := range []*delta{second, again} {
		m := c.next()
		if diff := cmp.Diff(map[string]string{"r1": bad.Version()}, versions(m)); diff != "" {
			t.Errorf("once a proxy took it (-want +got):\n%s", diff)
		}
		c.ack(m)
	}
	first.quiet() // refused it, and does not get it again
	other.quiet()
}

func TestNackOfEndpointsKeepsTheStream(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.give(shop(t)...)
	c := w.connect()
	w.srv.Apply(xds.Update{Endpoints: byName(assignment(t, "c1", 66))})
	c.nack(c.next(), "malformed IP address: nope")
	c.quiet()
	w.srv.Apply(xds.Update{Endpoints: byName(assignment(t, "c1", 2))})
	c.want("eds +c1")
	c.quiet()
	if n := w.nacks(1)[0]; n.TypeURL != xds.EndpointType || len(n.Resources) != 1 {
		t.Errorf("%+v", n)
	}
}

func TestStaleNoncesAreIgnored(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.give(shop(t)...)
	c := w.connect()
	c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.RouteType, ResponseNonce: "made-up", ErrorDetail: statusOf("no")})
	w.srv.Apply(xds.Update{Endpoints: byName(assignment(t, "c1", 2))})
	m := c.next()
	c.ack(m)
	c.nack(m, "answered twice")
	c.quiet()
	if n := see(w.rec, func(r *record) int { return len(r.nacks) }); n != 0 {
		t.Errorf("%d nacks recorded", n)
	}
}
