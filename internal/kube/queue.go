// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/decode"
)

// queue gathers the newest state of each object that changed until the worker takes them together. Its memory is bounded by the cluster.
type queue struct {
	clock clock.Clock
	ready chan struct{}

	mu      sync.Mutex
	pending map[decode.ID]metav1.Object
	since   time.Time
}

var _ toolscache.ResourceEventHandler = (*queue)(nil)

func newQueue(c clock.Clock) *queue {
	return &queue{clock: c, ready: make(chan struct{}, 1), pending: map[decode.ID]metav1.Object{}}
}

// OnAdd is called by an informer.
func (q *queue) OnAdd(object any, _ bool) { q.put(object, false) }

// OnUpdate is called by an informer, also when it has listed everything again and nothing has changed.
func (q *queue) OnUpdate(old, object any) {
	before, ok := old.(metav1.Object)
	after, now := object.(metav1.Object)
	if ok && now && before.GetResourceVersion() == after.GetResourceVersion() {
		return
	}
	q.put(object, false)
}

// OnDelete is called by an informer, late where it had lost its connection.
func (q *queue) OnDelete(object any) {
	if late, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
		object = late.Obj
	}
	q.put(object, true)
}

func (q *queue) put(object any, deleted bool) {
	o, ok := object.(metav1.Object)
	if !ok {
		return
	}
	id, ok := decode.IDOf(o)
	if !ok {
		return
	}
	if deleted {
		o = nil
	}
	q.mu.Lock()
	q.pending[id] = o
	if q.since.IsZero() {
		q.since = q.clock.Now()
	}
	q.mu.Unlock()
	select {
	case q.ready <- struct{}{}:
	default:
	}
}

// take returns the objects that changed, nil for one that is gone, and when the first change came.
func (q *queue) take() (map[decode.ID]metav1.Object, time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	pending, since := q.pending, q.since
	q.pending, q.since = map[decode.ID]metav1.Object{}, time.Time{}
	return pending, since
}
