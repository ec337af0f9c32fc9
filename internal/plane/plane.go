// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package plane is the loop from the model to the proxies: the store changed -> the Views and endpoint sets that read what changed -> envoy -> xds.
// It is the first file to read. The commands start it; nothing else calls it.
package plane

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"
	"weak"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/store"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// Options are what a Plane needs from its caller; all are required.
type Options struct {
	Store  *store.Memory
	Logger *slog.Logger
	// Now tells the time.
	Now func() time.Time
	// Recorder is told how long each build took.
	Recorder Recorder
}

// Recorder is told what the plane does.
type Recorder interface {
	// Built is called after each step with the number of Views and endpoint sets that were computed, and the time that it took.
	Built(views, sets int, took time.Duration)
}

// Deliverer takes what proxies are to have; the xds server is one.
type Deliverer interface {
	Apply(u xds.Update)
}

// Plane turns the model into configuration for the proxies that are connected, and for no others. All its work is done under one lock and in one order,
// so that everything below it can be plain; no client is ever waited for.
type Plane struct {
	opts Options
	out  Deliverer

	mu     sync.Mutex
	now    *store.Snapshot
	groups map[string]*group
	offers map[mesh.Key]*offer
	sets   map[mesh.EndpointSetKey]*set
	readBy index
	// parts and encoded are what the configurations of groups share.
	parts   *envoy.Parts
	encoded encodings
}

// New returns a plane that has not started. Deliver must be called before proxies may join.
func New(opts Options) *Plane {
	return &Plane{
		opts:   opts,
		now:    opts.Store.Snapshot(),
		groups: map[string]*group{},
		offers: map[mesh.Key]*offer{},
		sets:   map[mesh.EndpointSetKey]*set{},
		readBy: index{},
		parts:  &envoy.Parts{}, encoded: encodings{of: map[*envoy.Resource]weak.Pointer[xds.Resource]{}},
	}
}

// Deliver names the receiver of configuration: the xds server, which is itself made with the plane as its Director.
func (p *Plane) Deliver(out Deliverer) { p.out = out }

// Run follows the store until ctx ends. The first change is acted on at once; those that come while it is worked on are taken together.
func (p *Plane) Run(ctx context.Context) {
	watch := p.opts.Store.Watch()
	defer watch.Close()
	for {
		select {
		case <-ctx.Done():
			return
		case <-watch.Ready():
			keys, since := watch.Take()
			p.step(keys, since)
		}
	}
}

// step brings everything that read one of keys up to the newest snapshot.
func (p *Plane) step(keys []mesh.Key, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	started := p.opts.Now()
	p.now = p.opts.Store.Snapshot()
	dirty := p.readBy.readers(keys)
	b := p.begin()
	for _, o := range slices.SortedFunc(maps.Keys(dirty.offers), compareOffers) {
		if b.offer(o) {
			maps.Copy(dirty.groups, o.users)
		}
	}
	for _, g := range slices.SortedFunc(maps.Keys(dirty.groups), compareGroups) {
		b.group(g)
	}
	for _, s := range slices.SortedFunc(maps.Keys(dirty.sets), compareSets) {
		// A group that no longer names the set may just have taken it away.
		if p.sets[s.key] == s {
			b.set(s)
		}
	}
	update := b.end()
	update.Since = since
	p.opts.Recorder.Built(len(dirty.groups), len(dirty.sets), p.opts.Now().Sub(started))
	if len(update.Groups) > 0 || len(update.Endpoints) > 0 {
		p.out.Apply(update)
	}
}

// Findings returns what was found while making the configuration of the proxies that are connected, sorted.
func (p *Plane) Findings() []mesh.Finding {
	p.mu.Lock()
	defer p.mu.Unlock()
	var all []mesh.Finding
	for _, g := range p.groups {
		all = append(all, g.findings...)
	}
	for _, o := range p.offers {
		all = append(all, o.findings...)
	}
	for _, s := range p.sets {
		all = append(all, s.findings...)
	}
	return mesh.SortFindings(all)
}
