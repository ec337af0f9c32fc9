// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package feature_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tulle-mesh/tulle/internal/xds"
)

// The types, in the words of Envoy's documentation.
const (
	cds = "CDS"
	eds = "EDS"
	lds = "LDS"
	rds = "RDS"
)

var urls = map[string]string{cds: xds.ClusterType, eds: xds.EndpointType, lds: xds.ListenerType, rds: xds.RouteType}

func typeOf(url string) string {
	for name, u := range urls {
		if u == url {
			return name
		}
	}
	return url
}

// proxy asks, applies and answers as Envoy does: endpoints for each cluster, listeners once the clusters are warm, routes for each listener. A cluster that is
// added or changed warms until its endpoints come, and the answer to its response is held back until then.
type proxy struct {
	t    *testing.T
	w    *world
	node *corev3.Node
	wire wire
	// beats counts the changes of pulse.
	beats int
	// refuse names what is wrong with a resource, "" for nothing.
	refuse func(kind, name string, body *anypb.Any) string

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every change
	held    map[string]map[string]resource
	wants   map[string][]string
	warming map[string]bool
	log     []string
	ended   error // how the last stream ended
	live    bool
	cancel  context.CancelFunc
}

type resource struct {
	version string
	body    *anypb.Any
}

// wire is one of the two protocols.
type wire interface {
	// open starts a stream with the first requests, which say what the proxy holds.
	open(ctx context.Context, p *proxy) error
	// receive handles one response.
	receive(p *proxy) error
	// release answers what was held back, once nothing warms any more.
	release(p *proxy) error
	// demand says that the names wanted of a type have changed.
	demand(p *proxy, kind string, added, gone []string) error
}

// newProxy makes a proxy that has not connected.
func newProxy(w *world, id string, via wire) *proxy {
	w.t.Helper()
	metadata, err := structpb.NewStruct(map[string]any{"tulle": map[string]any{"ipv6": true}})
	if err != nil {
		w.t.Fatal(err)
	}
	p := &proxy{
		t: w.t, w: w, wire: via, node: &corev3.Node{Id: id, Cluster: id, Metadata: metadata, UserAgentName: "envoy"},
		changed: make(chan struct{}), held: map[string]map[string]resource{}, wants: map[string][]string{}, warming: map[string]bool{},
		refuse: func(string, string, *anypb.Any) string { return "" },
	}
	for kind := range urls {
		p.held[kind] = map[string]resource{}
	}
	w.t.Cleanup(p.disconnect)
	return p
}

// connect opens a stream and follows it until it ends.
func (p *proxy) connect() {
	p.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	p.mu.Lock()
	p.cancel, p.live, p.ended = cancel, true, nil
	clear(p.warming)
	for _, kind := range []string{eds, rds} {
		p.wants[kind] = p.leads(kind) // the last stream may have ended before it asked for them
	}
	p.mu.Unlock()
	err := p.wire.open(ctx, p)
	if errors.Is(err, io.EOF) {
		err = nil // the stream has ended already, and says how when it is read
	}
	go func() {
		for err == nil {
			err = p.wire.receive(p)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.live, p.ended = false, err
		p.notify()
	}()
}

func (p *proxy) disconnect() {
	p.mu.Lock()
	cancel := p.cancel
	p.mu.Unlock()
	if cancel != nil {
		cancel()
		p.await("the stream has ended", func() bool { return !p.live })
	}
}

// notify wakes those that await; the lock is held.
func (p *proxy) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// await waits until a condition on the proxy's state holds; it is called under the lock.
func (p *proxy) await(what string, condition func() bool) {
	p.t.Helper()
	deadline := time.After(patience)
	for {
		p.mu.Lock()
		ok, changed, over := condition(), p.changed, !p.live
		p.mu.Unlock()
		if ok {
			return
		}
		if over {
			deadline = time.After(0) // nothing more will come
		}
		select {
		case <-changed:
		case <-deadline:
			p.mu.Lock()
			defer p.mu.Unlock()
			p.t.Fatalf("never came: %s\nreceived: %s\nended: %v\nfindings: %v", what, strings.Join(p.log, ", "), p.ended, p.w.lastFindings())
		}
	}
}

// settle waits for a whole configuration: every cluster's endpoints, the listeners and every listener's routes.
func (p *proxy) settle() {
	p.t.Helper()
	p.await("a whole configuration", func() bool {
		return len(p.held[cds]) > 0 && len(p.held[lds]) > 0 && len(p.warming) == 0 &&
			holdsAll(p.held[eds], p.leads(eds)) && holdsAll(p.held[rds], p.leads(rds))
	})
}

func holdsAll(held map[string]resource, names []string) bool {
	for _, n := range names {
		if _, ok := held[n]; !ok {
			return false
		}
	}
	return true
}

// since returns what was received since the last call.
func (p *proxy) since() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	log := p.log
	p.log = nil
	return log
}

// apply takes the resources of one response, those that are refused excepted, and returns what is wrong with those. A whole response of a type
// that is sent whole names all there is; another names only what is new.
func (p *proxy) apply(kind string, got map[string]resource, removed []string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	defer p.notify()
	var events, faults []string
	for _, name := range slices.Sorted(maps.Keys(got)) {
		next := got[name]
		if fault := p.refuse(kind, name, next.body); fault != "" {
			faults = append(faults, name+": "+fault)
			events = append(events, "!"+name)
			continue
		}
		last, had := p.held[kind][name]
		same := had && proto.Equal(last.body, next.body)
		switch {
		case (kind == eds || kind == rds) && !slices.Contains(p.wants[kind], name):
			events = append(events, "?"+name) // Envoy throws it away
			continue
		case !had:
			events = append(events, "+"+name)
		case same:
			events = append(events, "="+name)
		default:
			events = append(events, "~"+name)
		}
		p.held[kind][name] = next
		switch {
		case kind == cds && !same && endpointsOf(next.body) != "":
			p.warming[endpointsOf(next.body)] = true
		case kind == eds:
			delete(p.warming, name)
		}
	}
	slices.Sort(removed)
	for _, name := range removed {
		if r, had := p.held[kind][name]; had && kind == cds {
			delete(p.warming, endpointsOf(r.body))
		}
		delete(p.held[kind], name)
		events = append(events, "-"+name)
	}
	p.log = append(p.log, strings.Join(append([]string{kind}, events...), " "))
	return strings.Join(faults, "; ")
}

// follow asks for what the resources of a type lead to, and answers what was held back.
func (p *proxy) follow() error {
	for _, next := range []string{eds, rds} {
		p.mu.Lock()
		names := p.leads(next)
		added, gone := difference(names, p.wants[next]), difference(p.wants[next], names)
		p.wants[next] = names
		for _, name := range gone {
			delete(p.held[next], name)
		}
		p.mu.Unlock()
		if len(added)+len(gone) == 0 {
			continue
		}
		if err := p.wire.demand(p, next, added, gone); err != nil {
			return err
		}
	}
	p.mu.Lock()
	warm := len(p.warming) == 0
	p.mu.Unlock()
	if warm {
		return p.wire.release(p)
	}
	return nil
}

// leads returns the names that clusters or listeners lead to, sorted; the lock is held.
func (p *proxy) leads(kind string) []string {
	from, name := p.held[cds], endpointsOf
	names := map[string]bool{}
	if kind == rds {
		for _, r := range p.held[lds] {
			for _, n := range routesOf(r.body) {
				names[n] = true
			}
		}
		return slices.Sorted(maps.Keys(names))
	}
	for _, r := range from {
		if n := name(r.body); n != "" {
			names[n] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

func difference(a, b []string) []string {
	var only []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			only = append(only, s)
		}
	}
	return only
}

// endpointsOf returns the load assignment that a cluster waits for, "" for none.
func endpointsOf(body *anypb.Any) string {
	c := new(clusterv3.Cluster)
	if err := body.UnmarshalTo(c); err != nil || c.GetType() != clusterv3.Cluster_EDS {
		return ""
	}
	if n := c.GetEdsClusterConfig().GetServiceName(); n != "" {
		return n
	}
	return c.GetName()
}

// routesOf returns the route configurations that a listener waits for.
func routesOf(body *anypb.Any) []string {
	l := new(listenerv3.Listener)
	if err := body.UnmarshalTo(l); err != nil {
		return nil
	}
	var names []string
	for _, chain := range append(l.GetFilterChains(), l.GetDefaultFilterChain()) {
		for _, f := range chain.GetFilters() {
			h := new(hcmv3.HttpConnectionManager)
			if f.GetTypedConfig().MessageIs(h) && f.GetTypedConfig().UnmarshalTo(h) == nil && h.GetRds() != nil {
				names = append(names, h.GetRds().GetRouteConfigName())
			}
		}
	}
	return names
}

// nameOf returns the name inside a resource, for the protocol that does not say it.
func nameOf(body *anypb.Any) (string, error) {
	m, err := body.UnmarshalNew()
	if err != nil {
		return "", err
	}
	switch m := m.(type) {
	case *endpointv3.ClusterLoadAssignment:
		return m.GetClusterName(), nil
	case interface{ GetName() string }:
		return m.GetName(), nil
	}
	return "", fmt.Errorf("%T has no name", m)
}

// routes returns the route configuration of port 8080 that the proxy holds.
func (p *proxy) routes() *routev3.RouteConfiguration {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	rc := new(routev3.RouteConfiguration)
	r, ok := p.held[rds][apiRoutes]
	if !ok {
		p.t.Fatalf("the proxy has no routes %s; it has %v", apiRoutes, slices.Sorted(maps.Keys(p.held[rds])))
	}
	if err := r.body.UnmarshalTo(rc); err != nil {
		p.t.Fatal(err)
	}
	return rc
}

// names returns the names of a type that the proxy holds.
func (p *proxy) names(kind string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.held[kind]))
}

// end waits for the end of the stream and returns how it ended; nil is code 0.
func (p *proxy) end() error {
	p.t.Helper()
	p.await("the end of the stream", func() bool { return !p.live })
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(p.ended, io.EOF) {
		return nil
	}
	return p.ended
}
