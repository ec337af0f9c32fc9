// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"

	"github.com/tulle-mesh/tulle/internal/xds"
)

// sotw is a client of the state-of-the-world protocol that says exactly what it is told to say.
type sotw struct {
	t       *testing.T
	stream  discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	in      chan *discoveryv3.DiscoveryResponse
	names   map[string][]string
	version map[string]string
	fences  int
}

func (w *world) sotw() *sotw {
	w.t.Helper()
	s, err := w.dial().StreamAggregatedResources(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	c := &sotw{t: w.t, stream: s, in: make(chan *discoveryv3.DiscoveryResponse, 1000), names: map[string][]string{}, version: map[string]string{}}
	go func() {
		defer close(c.in)
		for {
			m, err := s.Recv()
			if err != nil {
				return
			}
			c.in <- m
		}
	}()
	return c
}

func (c *sotw) send(r *discoveryv3.DiscoveryRequest) {
	c.t.Helper()
	if err := c.stream.Send(r); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// ask is the first request of a type.
func (c *sotw) ask(typeURL, version string, names ...string) {
	c.t.Helper()
	c.names[typeURL] = names
	c.send(&discoveryv3.DiscoveryRequest{Node: &corev3.Node{Id: "a"}, TypeUrl: typeURL, VersionInfo: version, ResourceNames: names})
}

func (c *sotw) next() *discoveryv3.DiscoveryResponse {
	c.t.Helper()
	select {
	case m, ok := <-c.in:
		if !ok {
			c.t.Fatal("stream ended")
		}
		return m
	case <-time.After(patience):
		c.t.Fatal("no response")
	}
	return nil
}

// ack answers with the names as they are now.
func (c *sotw) ack(m *discoveryv3.DiscoveryResponse) {
	c.t.Helper()
	c.version[m.GetTypeUrl()] = m.GetVersionInfo()
	c.send(&discoveryv3.DiscoveryRequest{
		TypeUrl: m.GetTypeUrl(), ResponseNonce: m.GetNonce(), VersionInfo: m.GetVersionInfo(), ResourceNames: c.names[m.GetTypeUrl()],
	})
}

func (c *sotw) nack(m *discoveryv3.DiscoveryResponse, message string) {
	c.t.Helper()
	c.send(&discoveryv3.DiscoveryRequest{
		TypeUrl: m.GetTypeUrl(), ResponseNonce: m.GetNonce(), VersionInfo: c.version[m.GetTypeUrl()], ResourceNames: c.names[m.GetTypeUrl()],
		ErrorDetail: statusOf(message),
	})
}

func (c *sotw) want(words ...string) {
	c.t.Helper()
	for _, word := range words {
		m := c.next()
		if got := c.short(m); got != word {
			c.t.Fatalf("got %q, want %q of %q", got, word, words)
		}
		c.ack(m)
	}
}

// quiet proves that nothing is on its way: it subscribes twice to a route that exists and sees that only the answers come.
func (c *sotw) quiet(last *discoveryv3.DiscoveryResponse) *discoveryv3.DiscoveryResponse {
	c.t.Helper()
	for range 2 {
		c.fences++
		name := fmt.Sprintf("fence-%d", c.fences)
		c.names[xds.RouteType] = append(c.names[xds.RouteType], name)
		if last == nil {
			c.ask(xds.RouteType, "", c.names[xds.RouteType]...)
		} else {
			c.ack(last)
		}
		last = c.next()
		if got := c.short(last); got != "rds +"+name {
			c.t.Fatalf("not quiet: %q", got)
		}
	}
	c.ack(last)
	return last
}

func (c *sotw) short(m *discoveryv3.DiscoveryResponse) string {
	c.t.Helper()
	words := []string{word(m.GetTypeUrl())}
	for _, a := range m.GetResources() {
		r, err := a.UnmarshalNew()
		if err != nil {
			c.t.Fatal(err)
		}
		words = append(words, "+"+nameOf(r)+tagOf(r))
	}
	return strings.Join(words, " ")
}

func nameOf(m proto.Message) string {
	if cla, ok := m.(*endpointv3.ClusterLoadAssignment); ok {
		return cla.GetClusterName()
	}
	return m.(interface{ GetName() string }).GetName()
}

// tagOf returns "@" and the tag of a resource made by the harness, "" for the tag "1".
func tagOf(m proto.Message) string {
	tag := ""
	switch r := m.(type) {
	case *clusterv3.Cluster:
		tag = r.GetAltStatName()
	case *listenerv3.Listener:
		tag = r.GetStatPrefix()
	case *routev3.RouteConfiguration:
		tag = r.GetInternalOnlyHeaders()[0]
	}
	if tag == "" || tag == "1" {
		return ""
	}
	return "@" + tag
}

// fences are routes that quiet needs.
func fences(t *testing.T) []*xds.Resource {
	t.Helper()
	var rs []*xds.Resource
	for i := range 10 {
		rs = append(rs, route(t, fmt.Sprintf("fence-%d", i), "1"))
	}
	return rs
}

func (w *world) connectSotW() *sotw {
	w.t.Helper()
	c := w.sotw()
	c.ask(xds.ClusterType, "")
	c.want("cds +c1")
	c.ask(xds.EndpointType, "", "c1")
	c.want("eds +c1")
	c.ask(xds.ListenerType, "")
	c.want("lds +l1")
	c.ask(xds.RouteType, "", "r1")
	return c
}

func TestSotWChanges(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.give(shop(t, fences(t)...)...)
	c := w.connectSotW()
	last := c.next()
	if got := c.short(last); got != "rds +r1" {
		t.Fatal(got)
	}
	last = c.quiet(last)

	w.srv.Apply(xds.Update{Endpoints: byName(assignment(t, "c1", 5))})
	c.want("eds +c1")
	w.give(append(fences(t), eds(t, "c1", "2"), listener(t, "l1", "1"), route(t, "r1", "1", "c1"))...)
	c.want("cds +c1@2", "eds +c1")
	c.quiet(last)

	// A replaced cluster stays in the set until the route that used it was sent.
	w.give(append(fences(t), eds(t, "c2", "1"), assignment(t, "c2", 2), listener(t, "l1", "1"), listener(t, "l2", "1"), route(t, "r1", "2", "c2"))...)
	c.want("cds +c1@2 +c2", "eds +c2", "lds +l1 +l2")
	last = c.next()
	if got := c.short(last); got != "rds +r1@2" {
		t.Fatal(got)
	}
	c.want("cds +c2")
	last = c.quiet(last)

	w.give(append(fences(t), eds(t, "c2", "1"), listener(t, "l1", "1"), route(t, "r1", "2", "c2"))...)
	c.want("lds +l1")
	c.quiet(last)
}

func TestSotWSubscriptions(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.give(shop(t, append(fences(t), eds(t, "c2", "1"), assignment(t, "c2", 2))...)...)
	c := w.sotw()
	c.ask(xds.ClusterType, "", "c2")
	c.want("cds +c2")
	c.ask(xds.EndpointType, "", "c2")
	m := c.next()
	if got := c.short(m); got != "eds +c2" {
		t.Fatal(got)
	}
	c.names[xds.EndpointType] = []string{"c1", "c2"}
	c.ack(m)
	c.want("eds +c1") // not c2 again
	// An answer to an older response does not change the names.
	stale := proto.CloneOf(m)
	c.names[xds.EndpointType] = nil
	c.ack(stale)
	c.names[xds.EndpointType] = []string{"c1", "c2"}
	c.quiet(nil)
	w.srv.Apply(xds.Update{Endpoints: byName(assignment(t, "c1", 9))})
	c.want("eds +c1")
	// Cluster c1 is not among the names asked for.
	w.give(append(fences(t), eds(t, "c2", "2"), eds(t, "c1", "2"))...)
	c.want("cds +c2@2", "eds +c2")
}

func TestSotWReconnect(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.give(shop(t, fences(t)...)...)
	first := w.sotw()
	first.ask(xds.ClusterType, "")
	first.want("cds +c1")
	first.ask(xds.EndpointType, "", "c1")
	first.want("eds +c1")
	first.ask(xds.ListenerType, "")
	first.want("lds +l1")
	version := first.version

	c := w.sotw()
	c.ask(xds.ClusterType, version[xds.ClusterType])
	c.ask(xds.ListenerType, version[xds.ListenerType])
	c.quiet(nil)

	w.give(append(fences(t), eds(t, "c1", "2"), assignment(t, "c1", 1), listener(t, "l1", "1"))...)
	c.want("cds +c1@2")
	c = w.sotw()
	c.ask(xds.ClusterType, version[xds.ClusterType])
	c.want("cds +c1@2")
	c.ask(xds.EndpointType, "some", "c1")
	c.want("eds +c1")
}

func TestSotWWarming(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.give(shop(t)...)
	c := w.connectSotW()
	c.want("rds +r1")
	w.give(warm(t, "c2", "1"), assignment(t, "c2", 2), listener(t, "l1", "2", "c2"), listener(t, "l2", "1"), route(t, "r1", "2", "c2"))
	cds := c.next()
	if got := c.short(cds); got != "cds +c1 +c2" {
		t.Fatal(got)
	}
	c.want("eds +c2", "lds +l1 +l2") // l1 as it was
	c.ack(cds)
	c.want("lds +l1@2 +l2", "rds +r1@2", "cds +c2")
}

func TestSotWNack(t *testing.T) {
	t.Parallel()
	w := start(t, xds.Limits{})
	w.give(shop(t)...)
	c := w.connectSotW()
	c.want("rds +r1")
	w.give(shop(t, listener(t, "l2", "1"))[:2]...) // l1 and r1 go
	c.want("lds")
	w.give(eds(t, "c1", "1"), listener(t, "l1", "bad"), listener(t, "l2", "1"))
	lds := c.next()
	if got := c.short(lds); got != "lds +l1@bad +l2" {
		t.Fatal(got)
	}
	c.nack(lds, "Error adding/updating listener(s) l1: no\n")
	w.give(eds(t, "c1", "1"), listener(t, "l1", "bad"), listener(t, "l2", "2"))
	lds = c.next()
	// The refused one has no good version on this server, so it stays in the set: leaving it out would take what the client has.
	if got := c.short(lds); got != "lds +l1@bad +l2@2" {
		t.Fatal(got)
	}
	eventually(t, "the nack", func() bool { return see(w.rec, func(r *record) bool { return len(r.nacks) == 1 }) })
	n := see(w.rec, func(r *record) xds.Nack { return r.nacks[0] })
	if !slices.ContainsFunc(n.Named, func(r *xds.Resource) bool { return r.Name() == "l1" }) || len(n.Named) != 1 || len(n.Resources) != 2 {
		t.Errorf("named %v of %v", n.Named, n.Resources)
	}
}
