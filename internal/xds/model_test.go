// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tulle-mesh/tulle/internal/xds"
)

// envoy is a model of how Envoy takes configuration: it subscribes to what its clusters and listeners refer to, throws away endpoints of clusters
// that it does not know, holds back the ack of clusters that warm, and notes every moment in which a request would be lost.
type envoy struct {
	mu           sync.Mutex
	t            *testing.T
	traits       map[string]xds.Traits        // by type, name and version
	has          map[string]map[string]string // type -> name -> version
	ready        map[string]bool              // clusters with endpoints and, if they warm, checked
	lost         []string
	unanswer     []func() // acks of clusters that are held back while one of them warms
	warms        map[string]bool
	versions     map[string]string // state of the world
	askListeners func()
	running      bool // clusters were complete once, so listeners are asked for
}

func newEnvoy(t *testing.T) *envoy {
	t.Helper()
	e := &envoy{t: t, traits: map[string]xds.Traits{}, has: map[string]map[string]string{}, ready: map[string]bool{}, warms: map[string]bool{}, versions: map[string]string{}}
	for _, typ := range []string{xds.ClusterType, xds.EndpointType, xds.ListenerType, xds.RouteType} {
		e.has[typ] = map[string]string{}
	}
	return e
}

func key(typeURL, name, version string) string { return typeURL + " " + name + " " + version }

// know tells the model what the resources mean.
func (e *envoy) know(rs []*xds.Resource) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range rs {
		e.traits[key(r.TypeURL(), r.Name(), r.Version())] = r.Traits
	}
}

// add takes one resource of a response.
func (e *envoy) add(typeURL, name, version string) {
	tr, ok := e.traits[key(typeURL, name, version)]
	if !ok {
		e.lost = append(e.lost, "never made: "+key(typeURL, name, version))
	}
	switch typeURL {
	case xds.ClusterType:
		if _, had := e.has[typeURL][name]; !had && tr.Warms {
			e.warms[name] = true
		}
	case xds.EndpointType:
		if _, known := e.has[xds.ClusterType][name]; !known {
			return // thrown away
		}
		e.ready[name] = true
	case xds.ListenerType, xds.RouteType:
		for _, c := range tr.Needs {
			if _, known := e.has[xds.ClusterType][c]; !known || !e.ready[c] || e.warms[c] {
				e.lost = append(e.lost, fmt.Sprintf("%s %s needs cluster %s: known %v, endpoints %v, warms %v", word(typeURL), name, c, known, e.ready[c], e.warms[c]))
			}
		}
	}
	e.has[typeURL][name] = version
}

func (e *envoy) remove(typeURL, name string) {
	delete(e.has[typeURL], name)
	if typeURL != xds.ClusterType {
		return
	}
	delete(e.has[xds.EndpointType], name)
	delete(e.ready, name)
	delete(e.warms, name)
	for _, typ := range []string{xds.ListenerType, xds.RouteType} {
		for n, v := range e.has[typ] {
			if slices.Contains(e.traits[key(typ, n, v)].Needs, name) {
				e.lost = append(e.lost, fmt.Sprintf("cluster %s removed while %s %s uses it", name, word(typ), n))
			}
		}
	}
}

// warmed ends the warming of all clusters and sends the acks that were held back.
func (e *envoy) warmed() {
	clear(e.warms)
	for _, ack := range e.unanswer {
		ack()
	}
	e.unanswer = nil
	e.proceed()
}

// answer acks at once, or holds the ack back while a cluster warms.
func (e *envoy) answer(typeURL string, ack func()) {
	if typeURL == xds.ClusterType && len(e.warms) > 0 {
		e.unanswer = append(e.unanswer, ack)
		return
	}
	ack()
}

// proceed goes on to listeners once the model has a first set of clusters that it can use, as Envoy does.
func (e *envoy) proceed() {
	if e.running || len(e.warms) > 0 || slices.ContainsFunc(keys(e.has[xds.ClusterType]), func(c string) bool { return !e.ready[c] }) {
		return
	}
	e.running = true
	e.askListeners()
}

// refers returns the names of routes that the listeners refer to: each listener l3 has its route r3.
func (e *envoy) refers() []string {
	var out []string
	for _, l := range keys(e.has[xds.ListenerType]) {
		out = append(out, "r"+l[1:])
	}
	return out
}

// link is one connection of the model.
type link struct {
	stop context.CancelFunc
	done chan struct{}
}

func (l *link) close() { l.stop(); <-l.done }

// connectDelta speaks the incremental protocol as Envoy does, bringing what the model has.
func (e *envoy) connectDelta(w *world) *link {
	ctx, stop := context.WithCancel(w.t.Context())
	s, err := w.dial().DeltaAggregatedResources(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	e.mu.Lock()
	e.unanswer = nil
	clear(e.warms)
	subs := map[string][]string{xds.EndpointType: keys(e.has[xds.ClusterType]), xds.RouteType: e.refers()}
	ask := func(typeURL string) {
		_ = s.Send(&discoveryv3.DeltaDiscoveryRequest{
			Node: &corev3.Node{Id: "a"}, TypeUrl: typeURL, ResourceNamesSubscribe: subs[typeURL], InitialResourceVersions: maps.Clone(e.has[typeURL]),
		})
	}
	e.askListeners = func() { ask(xds.ListenerType) }
	ask(xds.ClusterType)
	if len(subs[xds.EndpointType]) > 0 {
		ask(xds.EndpointType)
	}
	if e.running {
		ask(xds.ListenerType)
		ask(xds.RouteType)
	}
	e.mu.Unlock()
	l := &link{stop: stop, done: make(chan struct{})}
	// resubscribe sends the difference between what was and is to be subscribed to.
	resubscribe := func(typeURL string, next []string) {
		var more, less []string
		for _, n := range next {
			if !slices.Contains(subs[typeURL], n) {
				more = append(more, n)
			}
		}
		for _, n := range subs[typeURL] {
			if !slices.Contains(next, n) {
				delete(e.has[typeURL], n)
				less = append(less, n)
			}
		}
		subs[typeURL] = next
		if len(more)+len(less) > 0 {
			_ = s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: typeURL, ResourceNamesSubscribe: more, ResourceNamesUnsubscribe: less})
		}
	}
	go func() {
		defer close(l.done)
		for {
			m, err := s.Recv()
			if err != nil {
				return
			}
			e.mu.Lock()
			for _, r := range m.GetResources() {
				e.add(m.GetTypeUrl(), r.GetName(), r.GetVersion())
			}
			for _, name := range m.GetRemovedResources() {
				e.remove(m.GetTypeUrl(), name)
			}
			resubscribe(xds.EndpointType, keys(e.has[xds.ClusterType]))
			e.proceed()
			resubscribe(xds.RouteType, e.refers())
			e.answer(m.GetTypeUrl(), func() {
				_ = s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: m.GetTypeUrl(), ResponseNonce: m.GetNonce()})
			})
			e.mu.Unlock()
		}
	}()
	return l
}

// connectSotW speaks the state-of-the-world protocol.
func (e *envoy) connectSotW(w *world) *link {
	ctx, stop := context.WithCancel(w.t.Context())
	s, err := w.dial().StreamAggregatedResources(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	last := map[string]*discoveryv3.DiscoveryResponse{}
	names := map[string][]string{}
	say := func(typeURL string, m *discoveryv3.DiscoveryResponse) {
		version := e.versions[typeURL]
		if m != nil {
			version = m.GetVersionInfo()
			e.versions[typeURL] = version
		}
		_ = s.Send(&discoveryv3.DiscoveryRequest{
			Node: &corev3.Node{Id: "a"}, TypeUrl: typeURL, ResourceNames: names[typeURL], ResponseNonce: m.GetNonce(), VersionInfo: version,
		})
	}
	e.mu.Lock()
	e.unanswer = nil
	clear(e.warms)
	names[xds.EndpointType], names[xds.RouteType] = keys(e.has[xds.ClusterType]), e.refers()
	e.askListeners = func() { say(xds.ListenerType, nil) }
	say(xds.ClusterType, nil)
	if len(names[xds.EndpointType]) > 0 {
		say(xds.EndpointType, nil)
	}
	if e.running {
		say(xds.ListenerType, nil)
		if len(names[xds.RouteType]) > 0 {
			say(xds.RouteType, nil)
		}
	}
	e.mu.Unlock()
	l := &link{stop: stop, done: make(chan struct{})}
	go func() {
		defer close(l.done)
		for {
			m, err := s.Recv()
			if err != nil {
				return
			}
			e.mu.Lock()
			typ := m.GetTypeUrl()
			before := len(e.lost)
			e.takeSet(typ, m.GetResources())
			if last[xds.ClusterType] == nil && typ == xds.ClusterType {
				e.lost = e.lost[:before] // a server cannot put clusters into a set that were before its time
			}
			last[typ] = m
			for t, next := range map[string][]string{xds.EndpointType: keys(e.has[xds.ClusterType]), xds.RouteType: e.refers()} {
				if !slices.Equal(next, names[t]) {
					names[t] = next
					maps.DeleteFunc(e.has[t], func(n, _ string) bool { return !slices.Contains(next, n) })
					say(t, last[t])
				}
			}
			e.proceed()
			e.answer(typ, func() { say(typ, m) })
			e.mu.Unlock()
		}
	}()
	return l
}

// takeSet takes a response of the state-of-the-world protocol; the version of a resource is made from its content as the server does.
func (e *envoy) takeSet(typ string, set []*anypb.Any) {
	listed := map[string]bool{}
	for _, a := range set {
		m, err := a.UnmarshalNew()
		if err != nil {
			e.lost = append(e.lost, err.Error())
			continue
		}
		r, err := xds.NewResource(nameOf(m), m, xds.Traits{})
		if err != nil {
			e.lost = append(e.lost, err.Error())
			continue
		}
		listed[r.Name()] = true
		if e.has[typ][r.Name()] != r.Version() || typ == xds.EndpointType {
			e.add(typ, r.Name(), r.Version())
		}
	}
	if typ == xds.ClusterType || typ == xds.ListenerType {
		for _, name := range keys(e.has[typ]) {
			if !listed[name] {
				e.remove(typ, name)
			}
		}
	}
}

// invent makes a random, consistent configuration.
func invent(t *testing.T, rnd *rand.Rand) []*xds.Resource {
	t.Helper()
	var rs []*xds.Resource
	var names []string
	for i := range 6 {
		if rnd.IntN(3) == 0 {
			continue
		}
		name := fmt.Sprint("c", i)
		names = append(names, name)
		rs = append(rs, resource(t, name, &clusterv3.Cluster{Name: name, AltStatName: fmt.Sprint(rnd.IntN(2))},
			xds.Traits{Endpoints: name, Warms: i%3 == 0}), assignment(t, name, rnd.IntN(3)))
	}
	some := func() []string {
		return slices.DeleteFunc(slices.Clone(names), func(string) bool { return rnd.IntN(2) == 0 })
	}
	for i := range 3 {
		if rnd.IntN(4) > 0 {
			needs := some()
			rs = append(rs, listener(t, fmt.Sprint("l", i), fmt.Sprint(needs), needs...))
			needs = some()
			rs = append(rs, route(t, fmt.Sprint("r", i), fmt.Sprint(rnd.IntN(2)), needs...))
		}
	}
	return rs
}

// TestRandomChanges applies random configurations to proxies that come and go, and demands that no proxy ever has a moment in which it would lose
// a request, and that each ends with exactly what it shall have.
func TestRandomChanges(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(*envoy, *world) *link{"delta": (*envoy).connectDelta, "state of the world": (*envoy).connectSotW} {
		for seed := range uint64(8) {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				t.Parallel()
				randomChanges(t, seed, connect)
			})
		}
	}
}

func randomChanges(t *testing.T, seed uint64, connect func(*envoy, *world) *link) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(seed, 1))
	w := start(t, xds.Limits{Unacked: 1 + rnd.IntN(4), Burst: 1_000_000})
	e := newEnvoy(t)
	rs := invent(t, rnd)
	e.know(rs)
	w.give(rs...)
	l := connect(e, w)
	for range 60 {
		switch rnd.IntN(12) {
		case 0:
			l.close()
			l = connect(e, w)
		case 1, 2, 3:
			e.mu.Lock()
			e.warmed()
			e.mu.Unlock()
		case 4, 5:
			w.until("quiescence", func() bool {
				e.mu.Lock()
				defer e.mu.Unlock()
				e.warmed()
				return cmp.Equal(wanted(rs), e.has)
			})
		default:
			rs = invent(t, rnd)
			e.know(rs)
			w.give(rs...)
		}
	}
	late := false
	w.until("quiescence", func() bool {
		e.mu.Lock()
		defer e.mu.Unlock()
		e.warmed()
		late = cmp.Equal(wanted(rs), e.has)
		return late
	})
	l.close()
	if len(e.lost) > 0 {
		t.Errorf("moments in which requests are lost:\n%q", e.lost)
	}
}

// wanted is the state of a proxy that has all of a configuration.
func wanted(rs []*xds.Resource) map[string]map[string]string {
	m := map[string]map[string]string{xds.ClusterType: {}, xds.EndpointType: {}, xds.ListenerType: {}, xds.RouteType: {}}
	for _, r := range rs {
		m[r.TypeURL()][r.Name()] = r.Version()
	}
	return m
}
