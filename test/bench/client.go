// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tulle-mesh/tulle/internal/clock"
)

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	endpointType = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment"
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
	routeType    = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration"
)

// fleet is all clients of one run. Each has a connection of its own and asks as Envoy does: clusters, their endpoints, then listeners, their
// routes, all answers acknowledged.
type fleet struct {
	addr  string
	names *references

	mu       sync.Mutex
	complete int
	want     func(*discoveryv3.DeltaDiscoveryResponse) bool
	hits     map[int]time.Time
	bytes    int
	messages int
	failed   error
	scope    *scope // nil: what the clients get is not kept
}

func newFleet(addr string, capture bool) *fleet {
	f := &fleet{addr: addr, names: newReferences(), hits: map[int]time.Time{}}
	if capture {
		f.scope = &scope{Resources: map[string][]byte{}, Clients: map[string][]string{}}
	}
	return f
}

// connect starts n clients at once and returns when each has all that it asked for.
func (f *fleet) connect(ctx context.Context, n int) (time.Duration, error) {
	start := clock.Real{}.Now()
	for i := range n {
		go func() {
			if err := f.run(ctx, i); err != nil && ctx.Err() == nil {
				f.mu.Lock()
				f.failed = errors.Join(f.failed, fmt.Errorf("client %d: %w", i, err))
				f.mu.Unlock()
			}
		}()
	}
	err := f.wait(ctx, 2*time.Minute, func() bool { return f.complete >= n })
	return clock.Real{}.Now().Sub(start), err
}

// wait polls a condition under the lock until it holds.
func (f *fleet) wait(ctx context.Context, limit time.Duration, done func() bool) error {
	late := time.After(limit)
	for {
		f.mu.Lock()
		ok, err := done(), f.failed
		complete, hits := f.complete, len(f.hits)
		f.mu.Unlock()
		if err != nil {
			return err
		}
		if ok {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return fmt.Errorf("not done after %v: %d clients complete, %d have the change", limit, complete, hits)
		case <-time.After(200 * time.Microsecond):
		}
	}
}

// change makes one change and waits until n clients have acknowledged it. It returns the time until the last did.
func (f *fleet) change(ctx context.Context, n int, is func(*discoveryv3.DeltaDiscoveryResponse) bool, do func() error) (time.Duration, error) {
	f.mu.Lock()
	f.want, f.hits = is, map[int]time.Time{}
	f.mu.Unlock()
	start := clock.Real{}.Now()
	if err := do(); err != nil {
		return 0, err
	}
	if err := f.wait(ctx, 30*time.Second, func() bool { return len(f.hits) >= n }); err != nil {
		return 0, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.want = nil
	last := start
	for _, t := range f.hits {
		if t.After(last) {
			last = t
		}
	}
	return last.Sub(start), nil
}

// quiet waits until nothing has come for a while.
func (f *fleet) quiet(ctx context.Context, d time.Duration) error {
	last := -1
	for {
		f.mu.Lock()
		now, err := f.messages, f.failed
		f.mu.Unlock()
		if err != nil || now == last {
			return err
		}
		last = now
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(d):
		}
	}
}

func (f *fleet) received() (bytes, messages int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.bytes, f.messages
}

// client is one of the fleet.
type client struct {
	fleet   *fleet
	id      int
	stream  discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	missing map[string]map[string]bool // names asked for and not yet got, by type
	asked   map[string]map[string]bool
	said    map[string]bool // types asked for
	done    bool
}

func (f *fleet) run(ctx context.Context, id int) error {
	conn, err := grpc.NewClient(f.addr, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithReadBufferSize(8<<10), grpc.WithWriteBufferSize(4<<10), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() { _ = conn.Close() }()
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(conn).DeltaAggregatedResources(ctx, grpc.WaitForReady(true))
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	c := &client{fleet: f, id: id, stream: stream, missing: map[string]map[string]bool{}, asked: map[string]map[string]bool{}, said: map[string]bool{}}
	if err := c.ask(clusterType, nil); err != nil {
		return err
	}
	for {
		m, err := stream.Recv()
		if err != nil {
			return fmt.Errorf("receive: %w", err)
		}
		if err := c.take(m); err != nil {
			return err
		}
	}
}

// ask subscribes to names that were not asked for before; none means all.
func (c *client) ask(typeURL string, names []string) error {
	if names != nil {
		var more []string
		for _, n := range names {
			if c.asked[typeURL] == nil {
				c.asked[typeURL], c.missing[typeURL] = map[string]bool{}, map[string]bool{}
			}
			if !c.asked[typeURL][n] {
				c.asked[typeURL][n], c.missing[typeURL][n] = true, true
				more = append(more, n)
			}
		}
		if len(more) == 0 {
			return nil
		}
		names = more
	}
	r := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: names}
	if len(c.said) == 0 {
		r.Node = node(c.id)
	}
	c.said[typeURL] = true
	if err := c.stream.Send(r); err != nil {
		return fmt.Errorf("ask: %w", err)
	}
	return nil
}

// node is what an Envoy that tulle-agent started says of itself.
func node(id int) *corev3.Node {
	ours := structpb.NewStructValue(&structpb.Struct{})
	return &corev3.Node{Id: nodeID(id), UserAgentName: "bench", Metadata: &structpb.Struct{Fields: map[string]*structpb.Value{"tulle": ours}}}
}

// take acknowledges a response, notes what it means, and asks for what it refers to.
func (c *client) take(m *discoveryv3.DeltaDiscoveryResponse) error {
	if err := c.stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: m.GetTypeUrl(), ResponseNonce: m.GetNonce()}); err != nil {
		return fmt.Errorf("acknowledge: %w", err)
	}
	c.fleet.saw(c.id, m)
	typ := m.GetTypeUrl()
	for _, r := range m.GetResources() {
		delete(c.missing[typ], r.GetName())
	}
	for _, n := range m.GetRemovedResources() {
		delete(c.missing[typ], n)
	}
	if c.done {
		return nil
	}
	switch typ {
	case clusterType, listenerType:
		to := map[string]string{clusterType: endpointType, listenerType: routeType}[typ]
		var names []string
		for _, r := range m.GetResources() {
			refs, err := c.fleet.names.of(r)
			if err != nil {
				return err
			}
			names = append(names, refs...)
		}
		if err := c.ask(to, names); err != nil {
			return err
		}
	}
	return c.proceed(typ)
}

// proceed goes on to listeners once clusters are complete, and is done once listeners are.
func (c *client) proceed(typ string) error {
	if len(c.missing[endpointType])+len(c.missing[routeType]) > 0 {
		return nil
	}
	if !c.said[listenerType] {
		return c.ask(listenerType, nil)
	}
	if typ == listenerType || typ == routeType {
		c.done = true
		c.fleet.mu.Lock()
		c.fleet.complete++
		c.fleet.mu.Unlock()
	}
	return nil
}

// saw counts a response.
func (f *fleet) saw(id int, m *discoveryv3.DeltaDiscoveryResponse) {
	size, now := proto.Size(m), clock.Real{}.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bytes += size
	f.messages++
	if f.want != nil && f.want(m) {
		f.hits[id] = now
	}
	if f.scope != nil {
		f.scope.add(nodeID(id), m)
	}
}

// has returns a test for a response with endpoints that contain an address.
func has(marker string) func(*discoveryv3.DeltaDiscoveryResponse) bool {
	return func(m *discoveryv3.DeltaDiscoveryResponse) bool {
		for _, r := range m.GetResources() {
			if m.GetTypeUrl() == endpointType && bytes.Contains(r.GetResource().GetValue(), []byte(marker)) {
				return true
			}
		}
		return false
	}
}

// isRoute accepts any response with routes: nothing else changes them while a weight does.
func isRoute(m *discoveryv3.DeltaDiscoveryResponse) bool {
	return m.GetTypeUrl() == routeType && len(m.GetResources()) > 0
}

// references finds what clusters and listeners refer to, once for each version.
type references struct {
	mu    sync.Mutex
	known map[string][]string
}

func newReferences() *references { return &references{known: map[string][]string{}} }

func (f *references) of(r *discoveryv3.Resource) ([]string, error) {
	key := r.GetResource().GetTypeUrl() + " " + r.GetName() + " " + r.GetVersion()
	f.mu.Lock()
	defer f.mu.Unlock()
	if names, ok := f.known[key]; ok {
		return names, nil
	}
	m, err := r.GetResource().UnmarshalNew()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", r.GetName(), err)
	}
	var names []string
	switch m := m.(type) {
	case *clusterv3.Cluster:
		if m.GetType() == clusterv3.Cluster_EDS {
			name := m.GetEdsClusterConfig().GetServiceName()
			if name == "" {
				name = m.GetName()
			}
			names = append(names, name)
		}
	case *listenerv3.Listener:
		if names, err = routesOf(m); err != nil {
			return nil, err
		}
	}
	f.known[key] = names
	return names, nil
}

func routesOf(l *listenerv3.Listener) ([]string, error) {
	chains := l.GetFilterChains()
	if l.GetDefaultFilterChain() != nil {
		chains = append(chains, l.GetDefaultFilterChain())
	}
	var names []string
	for _, chain := range chains {
		for _, filter := range chain.GetFilters() {
			h := new(hcmv3.HttpConnectionManager)
			if !filter.GetTypedConfig().MessageIs(h) {
				continue
			}
			if err := filter.GetTypedConfig().UnmarshalTo(h); err != nil {
				return nil, fmt.Errorf("%s: %w", l.GetName(), err)
			}
			if name := h.GetRds().GetRouteConfigName(); name != "" {
				names = append(names, name)
			}
		}
	}
	return names, nil
}
