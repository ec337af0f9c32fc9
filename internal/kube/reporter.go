// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"context"
	"slices"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// reporter knows what became of each custom resource, on every replica, and writes it down on the leader.
type reporter struct {
	opts   Options
	client client.Client
	wake   chan struct{}
	// leading is held by the one run that may write.
	leading sync.Mutex

	mu sync.Mutex
	// objects are the custom resources as they were last seen.
	objects map[decode.ID]client.Object
	// findings are those of decoding, and extra those of the leader's checks.
	findings map[decode.ID][]mesh.Finding
	extra    map[decode.ID][]mesh.Finding
	// keys are what each object holds in the model, and from is the object behind each key.
	keys map[decode.ID]map[mesh.Key]struct{}
	from map[mesh.Key]decode.ID
	// dirty are the objects whose report may differ from their status.
	dirty map[decode.ID]struct{}
	// unchecked says that the model has changed since the last check.
	unchecked bool
	attempts  map[decode.ID]attempt
	sink      typedcorev1.EventInterface
	events    record.EventRecorder
}

func newReporter(o Options, c client.Client, sink typedcorev1.EventInterface) *reporter {
	return &reporter{
		opts: o, client: c, wake: make(chan struct{}, 1),
		objects: map[decode.ID]client.Object{}, findings: map[decode.ID][]mesh.Finding{}, extra: map[decode.ID][]mesh.Finding{},
		keys: map[decode.ID]map[mesh.Key]struct{}{}, from: map[mesh.Key]decode.ID{},
		dirty: map[decode.ID]struct{}{}, attempts: map[decode.ID]attempt{}, unchecked: true, sink: sink,
	}
}

func identity(s mesh.Source) decode.ID {
	return decode.ID{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}
}

// observe takes a step of the source: objects as they are now, nil for one that is gone, and what they changed in the model.
func (r *reporter) observe(objects map[decode.ID]metav1.Object, changes mesh.Changes) {
	r.mu.Lock()
	for id, object := range objects {
		r.see(id, object)
	}
	for _, key := range changes.Removed {
		r.release(key)
	}
	for _, object := range changes.Set {
		r.hold(object.Key(), identity(object.From()))
	}
	for source, list := range changes.Findings {
		id := identity(source)
		if len(list) == 0 {
			delete(r.findings, id)
		} else {
			r.findings[id] = list
		}
		r.dirty[id] = struct{}{}
	}
	if len(changes.Set) > 0 || len(changes.Removed) > 0 {
		r.unchecked = true
	}
	work := len(r.dirty) > 0 || r.unchecked
	r.mu.Unlock()
	if work {
		select {
		case r.wake <- struct{}{}:
		default:
		}
	}
}

func (r *reporter) see(id decode.ID, object metav1.Object) {
	if !reportedKind(id.Kind) {
		return
	}
	o, ok := object.(client.Object)
	if !ok {
		delete(r.objects, id)
		delete(r.attempts, id)
		delete(r.dirty, id)
		return
	}
	r.objects[id] = o
	r.dirty[id] = struct{}{}
}

func (r *reporter) hold(key mesh.Key, id decode.ID) {
	if r.from[key] == id {
		return
	}
	r.release(key)
	if !reportedKind(id.Kind) {
		return
	}
	r.from[key] = id
	if r.keys[id] == nil {
		r.keys[id] = map[mesh.Key]struct{}{}
	}
	r.keys[id][key] = struct{}{}
	r.dirty[id] = struct{}{}
}

func (r *reporter) release(key mesh.Key) {
	id, ok := r.from[key]
	if !ok {
		return
	}
	delete(r.from, key)
	delete(r.keys[id], key)
	if len(r.keys[id]) == 0 {
		delete(r.keys, id)
	}
	r.dirty[id] = struct{}{}
}

// The rhythm of the leader's work.
const (
	// gather is how long a change waits for those that belong to it.
	gather = 100 * time.Millisecond
	// look is how often proxies are asked what they refuse, and how often an object is written at most.
	look = 5 * time.Second
)

// run reports until ctx ends.
func (r *reporter) run(ctx context.Context) {
	r.leading.Lock()
	defer r.leading.Unlock()
	stop := r.startEvents()
	defer stop()
	r.mu.Lock()
	for id := range r.objects {
		r.dirty[id] = struct{}{}
	}
	r.unchecked = true
	r.mu.Unlock()
	for {
		r.check(ctx)
		due := r.write(ctx)
		select {
		case <-ctx.Done():
			return
		case <-r.opts.Clock.After(due):
			continue
		case <-r.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-r.opts.Clock.After(gather):
		}
	}
}

// check looks at the whole model where it has changed, and at the proxies, and notes whose findings differ from before.
func (r *reporter) check(ctx context.Context) {
	r.mu.Lock()
	unchecked, synced := r.unchecked, len(r.objects) > 0
	r.unchecked = false
	r.mu.Unlock()
	if !synced {
		return
	}
	var all []mesh.Finding
	if unchecked {
		all = r.opts.Check()
	}
	all = append(all, r.opts.Refusals(ctx)...)
	next := map[decode.ID][]mesh.Finding{}
	for _, f := range all {
		id := identity(f.Object)
		f.Object = mesh.Source{Kind: id.Kind, Namespace: id.Namespace, Name: id.Name}
		next[id] = append(next[id], f)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !unchecked {
		// Refusals alone are new; what checks have found still holds.
		for id, list := range r.extra {
			for _, f := range list {
				if f.Reason != mesh.ReasonRejected {
					next[id] = append(next[id], f)
				}
			}
		}
	}
	for id, list := range next {
		next[id] = mesh.SortFindings(list)
		if !slices.Equal(next[id], r.extra[id]) {
			r.dirty[id] = struct{}{}
		}
	}
	for id := range r.extra {
		if _, still := next[id]; !still {
			r.dirty[id] = struct{}{}
		}
	}
	r.extra = next
}
