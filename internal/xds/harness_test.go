// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// patience is how long a test waits for what must come; it only matters when a test fails.
const patience = 20 * time.Second

// world is a server on a pipe, with a clock that stands still, a director and a recorder that can be looked at.
type world struct {
	t     *testing.T
	srv   *xds.Server
	clock *clock.Fake
	rec   *record
	dir   *directory
	lis   *bufconn.Listener
	grpc  *grpc.Server
}

func start(t *testing.T, limits xds.Limits, changes ...func(*xds.Options)) *world {
	t.Helper()
	w := &world{t: t, clock: clock.NewFake(time.Unix(1_700_000_000, 0)), rec: newRecord(), dir: newDirectory(), lis: bufconn.Listen(64 << 10)}
	options := xds.Options{Director: w.dir, Recorder: w.rec, Clock: w.clock, Limits: limits}
	for _, change := range changes {
		change(&options)
	}
	w.srv = xds.New(options)
	w.grpc = grpc.NewServer(xds.ServerOptions()...)
	w.srv.Register(w.grpc)
	served := make(chan error, 1)
	go func() { served <- w.grpc.Serve(w.lis) }()
	t.Cleanup(func() {
		w.grpc.Stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return w
}

// dial opens a connection of its own, as each proxy does.
func (w *world) dial() discoveryv3.AggregatedDiscoveryServiceClient {
	w.t.Helper()
	conn, err := grpc.NewClient("passthrough:pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return w.lis.DialContext(ctx) }))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
}

// until moves the clock second by second until the condition holds, and says what was awaited if it never does.
func (w *world) until(what string, condition func() bool) {
	w.t.Helper()
	late := time.After(patience)
	for !condition() {
		w.clock.Advance(time.Second)
		select {
		case <-late:
			w.t.Fatalf("never came: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// eventually waits, with the clock standing still.
func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	late := time.After(patience)
	for !condition() {
		select {
		case <-late:
			t.Fatalf("never came: %s", what)
		case <-time.After(time.Millisecond):
		}
	}
}

// directory puts node "x" into group "x", and refuses those whose name starts with "unknown".
type directory struct {
	mu     sync.Mutex
	joined map[string]int
}

func newDirectory() *directory { return &directory{joined: map[string]int{}} }

func (d *directory) Join(_ context.Context, p xds.Proxy) (string, error) {
	if strings.HasPrefix(p.NodeID, "unknown") {
		return "", status.Errorf(codes.InvalidArgument, "no virtual node is named %q", p.NodeID)
	}
	if strings.HasPrefix(p.NodeID, "broken") {
		return "", errors.New("the store is away")
	}
	if strings.HasPrefix(p.NodeID, "panic") {
		panic("planted")
	}
	group, _, _ := strings.Cut(p.NodeID, "/")
	d.mu.Lock()
	defer d.mu.Unlock()
	d.joined[group]++
	return group, nil
}

func (d *directory) Leave(group string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.joined[group]--
}

func (d *directory) members(group string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.joined[group]
}

// record keeps all that the server told.
type record struct {
	mu           sync.Mutex
	connected    []string
	disconnected []error
	sent         map[string]int
	bytes        int
	acked        map[string]int
	latencies    []time.Duration
	nacks        []xds.Nack
	expired      []string
	cuts         []xds.CutReason
}

func newRecord() *record { return &record{sent: map[string]int{}, acked: map[string]int{}} }

func (r *record) Connected(p xds.Proxy, group string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.connected = append(r.connected, p.NodeID+" "+group)
}

func (r *record) Disconnected(_ xds.Proxy, _ string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.disconnected = append(r.disconnected, err)
}

func (r *record) Sent(typeURL string, resources, bytes int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.sent[typeURL] += resources
	r.bytes += bytes
}

func (r *record) Acked(typeURL string, since time.Duration, measured bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.acked[typeURL]++
	if measured {
		r.latencies = append(r.latencies, since)
	}
}

func (r *record) Nacked(n xds.Nack) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.nacks = append(r.nacks, n)
}

func (r *record) HoldExpired(_ xds.Proxy, res *xds.Resource) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.expired = append(r.expired, res.Name())
}

func (r *record) Cut(_ xds.Proxy, reason xds.CutReason) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cuts = append(r.cuts, reason)
}

func see[T any](r *record, f func(*record) T) T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return f(r)
}

// The resources below are small and differ by their tag alone.

func cluster(t *testing.T, name, tag string, traits xds.Traits) *xds.Resource {
	t.Helper()
	return resource(t, name, &clusterv3.Cluster{Name: name, AltStatName: tag, ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}}, traits)
}

// eds is a cluster whose endpoints have its own name.
func eds(t *testing.T, name, tag string) *xds.Resource {
	t.Helper()
	return cluster(t, name, tag, xds.Traits{Endpoints: name, Origin: "object of " + name})
}

func warm(t *testing.T, name, tag string) *xds.Resource {
	t.Helper()
	return cluster(t, name, tag, xds.Traits{Endpoints: name, Warms: true})
}

func listener(t *testing.T, name, tag string, needs ...string) *xds.Resource {
	t.Helper()
	return resource(t, name, &listenerv3.Listener{Name: name, StatPrefix: tag}, xds.Traits{Needs: needs})
}

func route(t *testing.T, name, tag string, needs ...string) *xds.Resource {
	t.Helper()
	m := &routev3.RouteConfiguration{Name: name, InternalOnlyHeaders: []string{tag}}
	for _, n := range needs {
		m.VirtualHosts = append(m.VirtualHosts, &routev3.VirtualHost{Name: n, Domains: []string{n}})
	}
	return resource(t, name, m, xds.Traits{Needs: needs})
}

func assignment(t *testing.T, name string, ports ...int) *xds.Resource {
	t.Helper()
	m := &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{}}}
	for _, p := range ports {
		m.Endpoints[0].LbEndpoints = append(m.Endpoints[0].LbEndpoints, &endpointv3.LbEndpoint{LoadBalancingWeight: wrapperspb.UInt32(uint32(p))})
	}
	return resource(t, name, m, xds.Traits{})
}

func resource(t *testing.T, name string, m proto.Message, traits xds.Traits) *xds.Resource {
	t.Helper()
	r, err := xds.NewResource(name, m, traits)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func byName(rs ...*xds.Resource) map[string]*xds.Resource {
	m := map[string]*xds.Resource{}
	for _, r := range rs {
		m[r.Name()] = r
	}
	return m
}

// config sorts resources by their type.
func config(rs ...*xds.Resource) *xds.Config {
	c := &xds.Config{}
	for _, r := range rs {
		switch r.TypeURL() {
		case xds.ClusterType:
			c.Clusters = append(c.Clusters, r)
		case xds.ListenerType:
			c.Listeners = append(c.Listeners, r)
		case xds.RouteType:
			c.Routes = append(c.Routes, r)
		}
	}
	return c
}

// give sets the whole state of group "a", and the endpoints among the resources.
func (w *world) give(rs ...*xds.Resource) {
	u := xds.Update{Groups: map[string]*xds.Config{"a": config(rs...)}, Endpoints: map[string]*xds.Resource{}}
	for _, r := range rs {
		if r.TypeURL() == xds.EndpointType {
			u.Endpoints[r.Name()] = r
		}
	}
	w.srv.Apply(u)
}

// delta is a client that says exactly what it is told to say.
type delta struct {
	t      *testing.T
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	in     chan *discoveryv3.DeltaDiscoveryResponse
	end    chan error
	fences int
}

func (w *world) delta(node string) *delta {
	w.t.Helper()
	s, err := w.dial().DeltaAggregatedResources(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	c := &delta{t: w.t, stream: s, in: make(chan *discoveryv3.DeltaDiscoveryResponse, 1000), end: make(chan error, 1)}
	go func() {
		for {
			m, err := s.Recv()
			if err != nil {
				c.end <- err
				return
			}
			c.in <- m
		}
	}()
	if node != "" {
		c.send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: node}, TypeUrl: xds.ClusterType})
	}
	return c
}

func (c *delta) send(r *discoveryv3.DeltaDiscoveryRequest) {
	c.t.Helper()
	if err := c.stream.Send(r); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

func (c *delta) subscribe(typeURL string, names ...string) {
	c.t.Helper()
	c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: names})
}

func (c *delta) ack(m *discoveryv3.DeltaDiscoveryResponse) {
	c.t.Helper()
	c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: m.GetTypeUrl(), ResponseNonce: m.GetNonce()})
}

func (c *delta) nack(m *discoveryv3.DeltaDiscoveryResponse, message string) {
	c.t.Helper()
	c.send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: m.GetTypeUrl(), ResponseNonce: m.GetNonce(), ErrorDetail: statusOf(message)})
}

// next returns the next response, not acked.
func (c *delta) next() *discoveryv3.DeltaDiscoveryResponse {
	c.t.Helper()
	select {
	case m := <-c.in:
		return m
	case err := <-c.end:
		c.t.Fatalf("stream ended: %v", err)
	case <-time.After(patience):
		c.t.Fatal("no response")
	}
	return nil
}

// want takes one response for each of these words and acks it. A word is what short makes of a response, such as "cds +a +b -c".
func (c *delta) want(words ...string) {
	c.t.Helper()
	for _, word := range words {
		m := c.next()
		if got := short(m); got != word {
			c.t.Fatalf("got %q, want %q of %q", got, word, words)
		}
		c.ack(m)
	}
}

// quiet proves that nothing is on its way: it asks twice for endpoints that do not exist and sees that only these answers come. The second
// comes after all that was planned together with the first.
func (c *delta) quiet() {
	c.t.Helper()
	for range 2 {
		c.fences++
		name := fmt.Sprintf("fence-%d", c.fences)
		c.subscribe(xds.EndpointType, name)
		c.want("eds -" + name)
	}
}

// ended returns the status with which the stream ends; responses before it are thrown away.
func (c *delta) ended() error {
	c.t.Helper()
	select {
	case err := <-c.end:
		return err
	case <-time.After(patience):
		c.t.Fatal("the stream does not end")
	}
	return nil
}

func short(m *discoveryv3.DeltaDiscoveryResponse) string {
	var b strings.Builder
	b.WriteString(word(m.GetTypeUrl()))
	for _, r := range m.GetResources() {
		b.WriteString(" +" + r.GetName())
	}
	for _, name := range slices.Sorted(slices.Values(m.GetRemovedResources())) {
		b.WriteString(" -" + name)
	}
	return b.String()
}

func word(typeURL string) string {
	return map[string]string{xds.ClusterType: "cds", xds.EndpointType: "eds", xds.ListenerType: "lds", xds.RouteType: "rds"}[typeURL]
}

func versions(ms ...*discoveryv3.DeltaDiscoveryResponse) map[string]string {
	out := map[string]string{}
	for _, m := range ms {
		for _, r := range m.GetResources() {
			out[r.GetName()] = r.GetVersion()
		}
	}
	return out
}

func keys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func statusOf(message string) *rpcstatus.Status {
	return &rpcstatus.Status{Code: int32(codes.Internal), Message: message}
}
