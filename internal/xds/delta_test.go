// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds_test

import (
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/xds"
)

// shop is a group with one listener, one route to one cluster, and its endpoints.
func shop(t *testing.T, more ...*xds.Resource) []*xds.Resource {
	t.Helper()
	return append([]*xds.Resource{
		eds(t, "c1", "1"), assignment(t, "c1", 1), listener(t, "l1", "1"), route(t, "r1", "1", "c1"),
	}, more...)
}

// connect brings a client as far as Envoy gets: everything of shop, acked.
func (w *world) connect() *delta {
	w.t.Helper()
	c := w.delta("a")
	c.want("cds +c1")
	c.subscribe(xds.EndpointType, "c1")
	c.want("eds +c1")
	c.subscribe(xds.ListenerType)
	c.want("lds +l1")
	c.subscribe(xds.RouteType, "r1")
	c.want("rds +r1")
	return c
}

func TestDeltaFirstConfig(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	cla := assignment(t, "c1", 7, 8)
	w.give(eds(t, "c2", "1"), eds(t, "c1", "1"), cla, assignment(t, "c2"), listener(t, "l1", "1"), route(t, "r1", "1"))
	c := w.delta("a")
	m := c.next()
	if got, want := short(m), "cds +c1 +c2"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	c.ack(m)
	c.subscribe(xds.EndpointType, "c1", "c2")
	m = c.next()
	if got, want := short(m), "eds +c1"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if got := m.GetResources()[0].GetVersion(); got != cla.Version() || len(got) > 16 {
		t.Errorf("version %q on the wire, the resource says %q", got, cla.Version())
	}
	wire, err := m.GetResources()[0].GetResource().UnmarshalNew()
	if err != nil {
		t.Fatal(err)
	}
	if cla.TypeURL() != m.GetResources()[0].GetResource().GetTypeUrl() || m.GetNonce() == "" {
		t.Errorf("incomplete response %v", m)
	}
	if size := len(wire.ProtoReflect().Descriptor().FullName()); size == 0 {
		t.Error("no type")
	}
	c.ack(m)
	c.want("eds +c2")
	c.subscribe(xds.ListenerType)
	c.want("lds +l1")
	c.subscribe(xds.RouteType, "r1")
	c.want("rds +r1")
	c.quiet()
}

func TestDeltaSubscriptions(t *testing.T) {
	t.Parallel()
	world := func(t *testing.T) *world {
		t.Helper()
		w := start(t, xds.Limits{})
		w.give(shop(t, eds(t, "c2", "1"), assignment(t, "c2", 2))...)
		return w
	}
	t.Run("a star means everything, and so does asking for nothing first", func(t *testing.T) {
		t.Parallel()
		w := world(t)
		c := w.delta("")
		c.send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "a"}, TypeUrl: xds.ClusterType, ResourceNamesSubscribe: []string{"*"}})
		c.want("cds +c1 +c2")
		c.quiet()
	})
	t.Run("names alone bring these alone, and those that do not exist are said to be gone", func(t *testing.T) {
		t.Parallel()
		w := world(t)
		c := w.delta("")
		c.send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "a"}, TypeUrl: xds.ClusterType, ResourceNamesSubscribe: []string{"c2", "cx"}})
		c.want("cds +c2", "cds -cx")
		w.give(shop(t, eds(t, "c2", "1"), eds(t, "cx", "1"))...)
		c.want("cds +cx")
		c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.ClusterType, ResourceNamesUnsubscribe: []string{"c2"}})
		c.quiet()
		w.give(shop(t, eds(t, "c2", "2"), eds(t, "cx", "2"))...)
		c.want("cds +cx")
		c.quiet()
	})
	t.Run("an empty set is told, since the client waits for it", func(t *testing.T) {
		t.Parallel()
		w := start(t, xds.Limits{})
		w.give()
		c := w.delta("a")
		c.want("cds")
		c.subscribe(xds.ListenerType)
		c.want("lds")
		c.quiet()
	})
	t.Run("what the client asks for again is sent again", func(t *testing.T) {
		t.Parallel()
		w := world(t)
		c := w.delta("a")
		c.want("cds +c1 +c2")
		c.subscribe(xds.EndpointType, "c1")
		c.want("eds +c1")
		c.subscribe(xds.EndpointType, "c1")
		c.want("eds +c1")
		c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.EndpointType, ResourceNamesUnsubscribe: []string{"c1"}})
		c.subscribe(xds.EndpointType, "c1")
		c.want("eds +c1")
		c.quiet()
	})
	t.Run("endpoints of clusters outside the group do not exist", func(t *testing.T) {
		t.Parallel()
		w := world(t)
		w.srv.Apply(xds.Update{Endpoints: byName(assignment(t, "secret", 1))})
		c := w.delta("a")
		c.want("cds +c1 +c2")
		c.subscribe(xds.EndpointType, "secret")
		c.want("eds -secret")
		w.srv.Apply(xds.Update{Endpoints: byName(assignment(t, "secret", 2))})
		c.quiet()
	})
	t.Run("after a name and the star the star alone can be taken back", func(t *testing.T) {
		t.Parallel()
		w := world(t)
		c := w.delta("a")
		c.want("cds +c1 +c2")
		c.subscribe(xds.ClusterType, "c1")
		c.want("cds +c1")
		c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.ClusterType, ResourceNamesUnsubscribe: []string{"*"}})
		c.quiet()
		w.give(shop(t, eds(t, "c2", "2"), assignment(t, "c2", 2))...)
		c.quiet()
		w.give(eds(t, "c1", "3"))
		c.want("cds +c1", "eds +c1")
		c.quiet()
	})
}

func TestDeltaChanges(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		update func(t *testing.T, w *world)
		want   []string
	}{
		"endpoints alone": {
			func(t *testing.T, w *world) {
				t.Helper()
				w.srv.Apply(xds.Update{Endpoints: byName(assignment(t, "c1", 2))})
			},
			[]string{"eds +c1"},
		},
		"nothing new": {
			func(t *testing.T, w *world) { t.Helper(); w.give(shop(t)...) },
			nil,
		},
		"a changed cluster is followed by its endpoints though unchanged": {
			func(t *testing.T, w *world) {
				t.Helper()
				w.give(eds(t, "c1", "2"), listener(t, "l1", "1"), route(t, "r1", "1", "c1"))
			},
			[]string{"cds +c1", "eds +c1"},
		},
		"a new cluster is followed by its endpoints at once, then by listeners and routes": {
			func(t *testing.T, w *world) {
				t.Helper()
				w.give(eds(t, "c1", "1"), eds(t, "c2", "1"), assignment(t, "c2", 2), listener(t, "l1", "2"), route(t, "r1", "2", "c1", "c2"))
			},
			[]string{"cds +c2", "eds +c2", "lds +l1", "rds +r1"},
		},
		"a replaced cluster goes after the route that used it": {
			func(t *testing.T, w *world) {
				t.Helper()
				w.give(eds(t, "c2", "1"), assignment(t, "c2", 2), listener(t, "l1", "1"), route(t, "r1", "2", "c2"))
			},
			[]string{"cds +c2", "eds +c2", "rds +r1", "cds -c1"},
		},
		"everything goes: listener, route, cluster": {
			func(t *testing.T, w *world) { t.Helper(); w.give() },
			[]string{"lds -l1", "rds -r1", "cds -c1"},
		},
		"endpoints that are gone while their cluster stays": {
			func(t *testing.T, w *world) {
				t.Helper()
				w.srv.Apply(xds.Update{Endpoints: map[string]*xds.Resource{"c1": nil}})
			},
			[]string{"eds -c1"},
		},
		"a listener that replaces another": {
			func(t *testing.T, w *world) {
				t.Helper()
				w.give(eds(t, "c1", "1"), listener(t, "l2", "1"), route(t, "r1", "1", "c1"))
			},
			[]string{"lds +l2 -l1"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, xds.Limits{})
			w.give(shop(t)...)
			c := w.connect()
			test.update(t, w)
			c.want(test.want...)
			c.quiet()
		})
	}
}

func TestDeltaDoesNotWaitForAcks(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.give(shop(t)...)
	c := w.connect()
	w.give(eds(t, "c1", "1"), eds(t, "c2", "1"), assignment(t, "c2", 2), listener(t, "l1", "1"), route(t, "r1", "2", "c2"))
	var got []string
	for range 3 {
		got = append(got, short(c.next()))
	}
	if diff := cmp.Diff([]string{"cds +c2", "eds +c2", "rds +r1"}, got); diff != "" {
		t.Errorf("without any ack (-want +got):\n%s", diff)
	}
}

func TestDeltaReconnect(t *testing.T) {
	t.Parallel()
	// back connects with these versions, all four requests in one burst as Envoy does.
	back := func(w *world, held map[string]map[string]string, first ...string) *delta {
		c := w.delta("")
		c.send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "a"}, TypeUrl: xds.ClusterType, InitialResourceVersions: held["cds"]})
		c.want(first...)
		c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.EndpointType, InitialResourceVersions: held["eds"], ResourceNamesSubscribe: keys(held["eds"])})
		c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.ListenerType, InitialResourceVersions: held["lds"]})
		c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.RouteType, InitialResourceVersions: held["rds"], ResourceNamesSubscribe: keys(held["rds"])})
		return c
	}
	holds := func(rs ...*xds.Resource) map[string]map[string]string {
		m := map[string]map[string]string{"cds": {}, "eds": {}, "lds": {}, "rds": {}}
		for _, r := range rs {
			m[word(r.TypeURL())][r.Name()] = r.Version()
		}
		return m
	}
	t.Run("unchanged: nothing is sent", func(t *testing.T) {
		t.Parallel()
		w := start(t, xds.Limits{})
		w.give(shop(t)...)
		c := back(w, holds(shop(t)...))
		c.quiet()
		eventually(t, "the versions count as acked", func() bool {
			acked := 0
			for _, p := range w.srv.Proxies() {
				for _, typ := range p.Types {
					for _, r := range typ.Resources {
						if r.Acked {
							acked++
						}
					}
				}
			}
			return acked == 4
		})
	})
	t.Run("what changed meanwhile is sent, and what is gone is removed last", func(t *testing.T) {
		t.Parallel()
		w := start(t, xds.Limits{})
		w.give(eds(t, "c2", "1"), assignment(t, "c2", 2), listener(t, "l1", "1"), route(t, "r1", "2", "c2"))
		c := back(w, holds(shop(t, listener(t, "l0", "1"), route(t, "r0", "1"))...), "cds +c2")
		c.want("eds +c2", "lds -l0", "rds +r1", "rds -r0", "cds -c1")
		c.subscribe(xds.EndpointType, "c2")
		c.want("eds +c2")
		c.quiet()
	})
	t.Run("a changed cluster is followed by its endpoints though the client has them", func(t *testing.T) {
		t.Parallel()
		w := start(t, xds.Limits{})
		w.give(eds(t, "c1", "2"), assignment(t, "c1", 1), listener(t, "l1", "1"), route(t, "r1", "1", "c1"))
		c := back(w, holds(shop(t)...), "cds +c1")
		c.want("eds +c1")
		c.quiet()
	})
	t.Run("a client without routes loses its old clusters after a while", func(t *testing.T) {
		t.Parallel()
		w := start(t, xds.Limits{})
		w.give(eds(t, "c2", "1"), assignment(t, "c2", 2))
		c := w.delta("")
		c.send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "a"}, TypeUrl: xds.ClusterType, InitialResourceVersions: map[string]string{"c1": "x"}})
		c.want("cds +c2")
		c.subscribe(xds.EndpointType, "c2")
		c.want("eds +c2")
		c.quiet()
		w.until("the removal", func() bool { return len(c.in) > 0 })
		c.want("cds -c1")
		c.quiet()
	})
}

func TestWarmingHoldsRoutes(t *testing.T) {
	t.Parallel()
	next := func(t *testing.T, w *world) {
		t.Helper()
		w.give(warm(t, "c2", "1"), assignment(t, "c2", 2), listener(t, "l1", "1"), listener(t, "l2", "1", "c2"),
			route(t, "r1", "2", "c2"), route(t, "r2", "1"))
	}
	connect := func(t *testing.T) (*world, *delta, *discoveryv3.DeltaDiscoveryResponse) {
		t.Helper()
		w := start(t, xds.Limits{})
		w.give(shop(t, route(t, "r2", "0"))...)
		c := w.connect()
		c.subscribe(xds.RouteType, "r2")
		c.want("rds +r2")
		next(t, w)
		cds := c.next() // held back, as Envoy does while c2 warms
		if got := short(cds); got != "cds +c2" {
			t.Fatalf("got %q", got)
		}
		c.want("eds +c2", "rds +r2")
		c.quiet()
		return w, c, cds
	}
	t.Run("until the ack of the cluster comes", func(t *testing.T) {
		t.Parallel()
		_, c, cds := connect(t)
		c.ack(cds)
		c.want("lds +l2", "rds +r1", "cds -c1")
		c.quiet()
	})
	t.Run("for 15 seconds at most", func(t *testing.T) {
		t.Parallel()
		w, c, _ := connect(t)
		began := w.clock.Now()
		w.until("the routes", func() bool { return len(c.in) >= 2 })
		if waited := w.clock.Now().Sub(began); waited < 10*time.Second {
			t.Errorf("the first came after %v", waited)
		}
		c.want("lds +l2", "rds +r1", "cds -c1")
		c.quiet()
		if got := see(w.rec, func(r *record) []string { return r.expired }); !cmp.Equal(got, []string{"l2", "r1"}) {
			t.Errorf("recorded as expired: %q", got)
		}
	})
	t.Run("not when the route goes back", func(t *testing.T) {
		t.Parallel()
		w, c, _ := connect(t)
		w.give(shop(t, warm(t, "c2", "1"), assignment(t, "c2", 2), route(t, "r2", "1"))...)
		c.quiet()
		w.give(shop(t, route(t, "r2", "1"))...)
		c.want("cds -c2")
		c.quiet()
	})
	t.Run("a refused cluster holds nothing", func(t *testing.T) {
		t.Parallel()
		_, c, cds := connect(t)
		c.nack(cds, "Error adding/updating cluster(s) c2: no")
		c.want("lds +l2", "rds +r1", "cds -c1")
	})
}

func TestCoalescing(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{Unacked: 2})
	w.give(shop(t)...)
	c := w.connect()
	last := assignment(t, "c1", 1)
	for i := range 100 {
		last = assignment(t, "c1", 100+i)
		w.srv.Apply(xds.Update{Since: w.clock.Now(), Endpoints: byName(last)})
		w.clock.Advance(time.Millisecond)
	}
	var got []*discoveryv3.DeltaDiscoveryResponse
	for {
		m := c.next()
		got = append(got, m)
		c.ack(m)
		if m.GetResources()[0].GetVersion() == last.Version() {
			break
		}
	}
	if len(got) > 99 {
		t.Errorf("%d responses for 100 changes to a client that may have 2 unanswered", len(got))
	}
	c.quiet()
	eventually(t, "the latency of the oldest change in a response", func() bool {
		return see(w.rec, func(r *record) bool { return len(r.latencies) >= len(got) })
	})
}

func TestUnackedResponsesAreBounded(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{Unacked: 3})
	w.give(shop(t)...)
	c := w.connect()
	var pending []*discoveryv3.DeltaDiscoveryResponse
	for i := range 3 {
		w.srv.Apply(xds.Update{Endpoints: byName(assignment(t, "c1", 10+i))})
		pending = append(pending, c.next())
	}
	last := assignment(t, "c1", 99)
	w.srv.Apply(xds.Update{Endpoints: byName(assignment(t, "c1", 98))})
	w.srv.Apply(xds.Update{Endpoints: byName(last)})
	w.give(eds(t, "c1", "1"), listener(t, "l1", "1"), route(t, "r1", "1", "c1"), eds(t, "c2", "1"), assignment(t, "c2", 1))
	c.want("cds +c2") // another type goes on
	c.ack(pending[0])
	m := c.next()
	if diff := cmp.Diff(map[string]string{"c1": last.Version()}, versions(m)); diff != "" {
		t.Errorf("the newest alone must come once there is room (-want +got):\n%s", diff)
	}
	c.ack(m) // answers those before it too
	c.want("eds +c2")
	c.quiet()
}

func TestLatencyIsThatOfTheOldestChange(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.give(shop(t)...)
	c := w.connect()
	began := w.clock.Now()
	w.srv.Apply(xds.Update{Since: began, Endpoints: byName(assignment(t, "c1", 2))})
	m := c.next()
	w.clock.Advance(300 * time.Millisecond)
	c.ack(m)
	eventually(t, "the latency", func() bool { return see(w.rec, func(r *record) bool { return len(r.latencies) == 1 }) })
	w.srv.Apply(xds.Update{Endpoints: byName(assignment(t, "c1", 3))}) // no time given
	c.want("eds +c1")
	c.quiet()
	if diff := cmp.Diff([]time.Duration{300 * time.Millisecond}, see(w.rec, func(r *record) []time.Duration { return r.latencies })); diff != "" {
		t.Errorf("latencies (-want +got):\n%s", diff)
	}
}
