// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tulle-mesh/tulle/internal/xds"
)

func TestStreamsThatEnd(t *testing.T) {
	t.Parallel()
	node := &corev3.Node{Id: "a"}
	long := strings.Repeat("x", 100)
	tests := map[string]struct {
		say  []*discoveryv3.DeltaDiscoveryRequest
		then func(w *world)
		code codes.Code
		text string
		cut  xds.CutReason
	}{
		"an unknown node": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{Node: &corev3.Node{Id: "unknown-x"}, TypeUrl: xds.ClusterType}},
			code: codes.InvalidArgument, text: `no virtual node is named "unknown-x"`,
		},
		"a director that fails": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{Node: &corev3.Node{Id: "broken"}, TypeUrl: xds.ClusterType}},
			code: codes.Unavailable, text: "the store is away",
		},
		"a director that panics": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{Node: &corev3.Node{Id: "panic"}, TypeUrl: xds.ClusterType}},
			code: codes.Internal, text: "fault of the control plane",
		},
		"no node": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{TypeUrl: xds.ClusterType}},
			code: codes.InvalidArgument, text: "no node", cut: xds.CutGarbage,
		},
		"another node later": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{Node: node, TypeUrl: xds.ClusterType}, {Node: &corev3.Node{Id: "b"}, TypeUrl: xds.ListenerType}},
			code: codes.InvalidArgument, text: `from "a" to "b"`, cut: xds.CutGarbage,
		},
		"a type that is not served": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{Node: node, TypeUrl: "type.googleapis.com/" + long + long}},
			code: codes.InvalidArgument, text: "not served here", cut: xds.CutGarbage,
		},
		"an empty name": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{Node: node, TypeUrl: xds.EndpointType, ResourceNamesSubscribe: []string{""}}},
			code: codes.InvalidArgument, text: "empty resource name", cut: xds.CutGarbage,
		},
		"an endless name": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{Node: node, TypeUrl: xds.EndpointType, ResourceNamesSubscribe: []string{long}}},
			code: codes.ResourceExhausted, text: "100 bytes: the limit is 50", cut: xds.CutFlood,
		},
		"too many names at once": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{Node: node, TypeUrl: xds.EndpointType, ResourceNamesSubscribe: many("n", 11)}},
			code: codes.ResourceExhausted, text: "11 names", cut: xds.CutFlood,
		},
		"too many names bit by bit": {
			say: []*discoveryv3.DeltaDiscoveryRequest{
				{Node: node, TypeUrl: xds.EndpointType, ResourceNamesSubscribe: many("n", 9)}, {TypeUrl: xds.EndpointType, ResourceNamesSubscribe: many("m", 9)},
			},
			code: codes.ResourceExhausted, text: "18 names", cut: xds.CutFlood,
		},
		"too many names to give up": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{Node: node, TypeUrl: xds.EndpointType, ResourceNamesUnsubscribe: many("n", 11)}},
			code: codes.ResourceExhausted, text: "11 names", cut: xds.CutFlood,
		},
		"too many versions": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{Node: node, TypeUrl: xds.ClusterType, InitialResourceVersions: map[string]string{"1": "", "2": "", "3": "", "4": "", "5": "", "6": "", "7": "", "8": "", "9": "", "10": "", "11": ""}}},
			code: codes.ResourceExhausted, text: "11 resources", cut: xds.CutFlood,
		},
		"a group that goes": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{Node: node, TypeUrl: xds.ClusterType}},
			then: func(w *world) { w.srv.Apply(xds.Update{Groups: map[string]*xds.Config{"a": nil}}) },
			code: codes.InvalidArgument, text: `no configuration for "a" any more`,
		},
		"a group that never was": {
			say:  []*discoveryv3.DeltaDiscoveryRequest{{Node: &corev3.Node{Id: "c"}, TypeUrl: xds.ClusterType}},
			code: codes.InvalidArgument, text: `no configuration for "c" any more`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := start(t, xds.Limits{Names: 10, NameLength: 50})
			w.give(shop(t)...)
			c := w.delta("")
			for _, r := range test.say {
				c.send(r)
			}
			if test.then != nil {
				c.next()
				test.then(w)
			}
			err := c.ended()
			if status.Code(err) != test.code || !strings.Contains(err.Error(), test.text) {
				t.Errorf("ended with %v, want code %v and %q", err, test.code, test.text)
			}
			if test.cut != "" {
				eventually(t, "the record of the cut", func() bool {
					return see(w.rec, func(r *record) bool { return len(r.cuts) == 1 && r.cuts[0] == test.cut })
				})
			}
			for _, g := range []string{"a", "c"} {
				eventually(t, "the director's leave", func() bool { return w.dir.members(g) == 0 })
			}
			w.give(shop(t)...)
			w.connect() // others are unharmed
		})
	}
}

func many(prefix string, n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprint(prefix, i)
	}
	return out
}

func TestFloodIsCut(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{Requests: 1, Burst: 20})
	w.give(shop(t)...)
	c := w.connect()
	for i := range 30 { // answers to responses are free
		w.srv.Apply(xds.Update{Endpoints: byName(assignment(t, "c1", 100+i))})
		c.want("eds +c1")
	}
	for range 100 {
		if c.stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: xds.RouteType, ResponseNonce: "x"}) != nil {
			break
		}
	}
	if err := c.ended(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("ended with %v", err)
	}
}

func TestSilentClientIsCut(t *testing.T) {
	t.Parallel()
	t.Run("that says nothing at all", func(t *testing.T) {
		t.Parallel()
		w := start(t, xds.Limits{})
		c := w.delta("")
		w.until("the end", func() bool { return len(c.end) == 1 })
		if err := c.ended(); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("ended with %v", err)
		}
	})
	t.Run("that does not answer", func(t *testing.T) {
		t.Parallel()
		w := start(t, xds.Limits{})
		w.give(shop(t)...)
		c := w.delta("a")
		c.next()
		began := w.clock.Now()
		w.until("the end", func() bool { return len(c.end) == 1 })
		if err := c.ended(); status.Code(err) != codes.DeadlineExceeded || w.clock.Now().Sub(began) < 5*time.Minute {
			t.Errorf("ended with %v after %v", err, w.clock.Now().Sub(began))
		}
	})
	t.Run("that does not read", func(t *testing.T) {
		t.Parallel()
		w := start(t, xds.Limits{})
		big := func(tag string) []*xds.Resource {
			var rs []*xds.Resource
			for i := range 50 {
				rs = append(rs, eds(t, fmt.Sprint("c", i), tag+strings.Repeat("x", 10_000)))
			}
			return rs
		}
		w.give(big("")...)
		s, err := w.dial().DeltaAggregatedResources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "a"}, TypeUrl: xds.ClusterType}); err != nil {
			t.Fatal(err)
		}
		other := w.delta("a/2")
		other.next()
		round := 0
		w.until("the cut", func() bool {
			round++
			w.give(big(fmt.Sprint(round))...)
			for len(other.in) > 0 {
				other.ack(other.next())
			}
			return see(w.rec, func(r *record) bool { return len(r.cuts) > 0 && r.cuts[0] == xds.CutSlowReader })
		})
		eventually(t, "the director's leave", func() bool { return w.dir.members("a") == 1 })
	})
}

func TestCrowd(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{Streams: 1})
	w.give(shop(t)...)
	w.connect()
	if err := w.delta("a").ended(); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("ended with %v", err)
	}
}

func TestClose(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.give(shop(t)...)
	c := w.connect()
	d := w.connectSotW()
	w.srv.Close()
	if err := c.ended(); err.Error() != "EOF" {
		t.Errorf("ended with %v, want status OK", err)
	}
	for range d.in { // closed by the end of the stream
		continue
	}
	if err := w.delta("a").ended(); status.Code(err) != codes.Unavailable {
		t.Errorf("a new stream ended with %v", err)
	}
	eventually(t, "the goodbyes", func() bool {
		return see(w.rec, func(r *record) bool {
			return len(r.disconnected) == 2 && r.disconnected[0] == nil && r.disconnected[1] == nil && w.dir.members("a") == 0
		})
	})
	if got := w.srv.Proxies(); len(got) != 0 {
		t.Errorf("still connected: %v", got)
	}
}

func TestBadUpdateLeavesOutWhatCannotBeDelivered(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.srv.Apply(xds.Update{
		Groups: map[string]*xds.Config{"a": {
			Clusters:  []*xds.Resource{eds(t, "c1", "1"), eds(t, "c1", "2")},
			Listeners: []*xds.Resource{route(t, "r1", "1")},
		}},
		Endpoints: map[string]*xds.Resource{"c1": assignment(t, "c2", 1)},
	})
	c := w.delta("a")
	c.want("cds +c1")
	c.subscribe(xds.ListenerType)
	c.want("lds")
	c.subscribe(xds.EndpointType, "c1")
	c.want("eds -c1")
	c.quiet()
}
