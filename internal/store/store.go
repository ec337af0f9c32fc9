// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package store holds the current state of the model: immutable snapshots, and a notice of each change. The inputs write to it and plane reads from it.
package store

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Memory is a store that lives as long as the process. It is safe for concurrent use.
type Memory struct {
	mu       sync.Mutex
	snapshot *Snapshot
	findings map[mesh.Source][]mesh.Finding
	watchers map[*Watch]struct{}
}

// New returns an empty store.
func New(opts mesh.Options) *Memory {
	return &Memory{
		snapshot: &Snapshot{opts: opts},
		findings: map[mesh.Source][]mesh.Finding{},
		watchers: map[*Watch]struct{}{},
	}
}

// Apply makes one step and tells every watcher. It costs what the step costs, however large the model is.
func (m *Memory) Apply(c mesh.Changes) {
	m.mu.Lock()
	defer m.mu.Unlock()
	changed := make([]mesh.Key, 0, len(c.Set)+len(c.Removed))
	edit := m.snapshot.edit()
	for _, o := range c.Set {
		edit.set(o)
		changed = append(changed, o.Key())
	}
	for _, k := range c.Removed {
		edit.remove(k)
		changed = append(changed, k)
	}
	m.snapshot = edit.done()
	for source, list := range c.Findings {
		if len(list) == 0 {
			delete(m.findings, source.Identity())
			continue
		}
		m.findings[source.Identity()] = slices.Clone(list)
	}
	if len(changed) == 0 {
		return
	}
	for w := range m.watchers {
		w.add(changed, c.Since)
	}
}

// Snapshot returns the current state, which never changes.
func (m *Memory) Snapshot() *Snapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.snapshot
}

// Findings returns what the inputs have found, sorted.
func (m *Memory) Findings() []mesh.Finding {
	m.mu.Lock()
	defer m.mu.Unlock()
	return mesh.SortFindings(slices.Concat(slices.Collect(maps.Values(m.findings))...))
}

// Watch begins a watch. Close it to end it.
func (m *Memory) Watch() *Watch {
	w := &Watch{store: m, ready: make(chan struct{}, 1), keys: map[mesh.Key]struct{}{}}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.watchers[w] = struct{}{}
	return w
}

// Watch gathers the keys that changed since it was last read. Its memory is bounded by the model, however slow the reader is.
type Watch struct {
	store *Memory
	ready chan struct{}

	mu    sync.Mutex
	keys  map[mesh.Key]struct{}
	since time.Time
}

// Ready receives when there is something to Take.
func (w *Watch) Ready() <-chan struct{} { return w.ready }

// Take returns the keys that changed, in no order, and when the oldest of the changes reached its input (the zero time where no input said).
func (w *Watch) Take() ([]mesh.Key, time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	keys := slices.Collect(maps.Keys(w.keys))
	since := w.since
	clear(w.keys)
	w.since = time.Time{}
	return keys, since
}

// Close ends the watch.
func (w *Watch) Close() {
	w.store.mu.Lock()
	defer w.store.mu.Unlock()
	delete(w.store.watchers, w)
}

func (w *Watch) add(keys []mesh.Key, since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range keys {
		w.keys[k] = struct{}{}
	}
	if w.since.IsZero() || (!since.IsZero() && since.Before(w.since)) {
		w.since = since
	}
	select {
	case w.ready <- struct{}{}:
	default:
	}
}
