// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// attempt is the last write of an object.
type attempt struct {
	// next is the earliest time of another.
	next time.Time
	// wanted are the conditions that it asked for, to tell whether somebody else writes something different in their place.
	wanted client.Object
	// again counts how often the same was written one after the other.
	again int
}

// job is one object that is to be written.
type job struct {
	id     decode.ID
	before client.Object
	after  client.Object
	// finalizers says that the original controller's are to be taken off before anything else.
	finalizers bool
}

const (
	// writers is how many objects are written at once.
	writers = 8
	// mostPatience doubles the wait between writes of the same this often, to ten minutes, where another controller undoes them.
	mostPatience = 7
	// quarrel is after how many such writes the log says so.
	quarrel = 3
)

// write brings the status of dirty objects up to date. It returns when to come back: when the first of those that must wait is due, and soon enough to look.
func (r *reporter) write(ctx context.Context) time.Duration {
	jobs, due := r.jobs()
	var g errgroup.Group
	g.SetLimit(writers)
	for _, j := range jobs {
		g.Go(func() error { r.do(ctx, j); return nil })
	}
	_ = g.Wait() // each object's error is handled where it arises
	return due
}

// jobs takes the dirty objects whose time has come.
func (r *reporter) jobs() ([]job, time.Duration) {
	now := r.opts.Clock.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	var jobs []job
	due := look
	for id := range r.dirty {
		object := r.objects[id]
		if object == nil {
			delete(r.dirty, id)
			continue
		}
		j, needed := r.job(id, object, now)
		if !needed {
			delete(r.dirty, id)
			continue
		}
		if wait := r.attempts[id].next.Sub(now); wait > 0 && !j.finalizers {
			due = min(due, wait)
			continue
		}
		delete(r.dirty, id)
		r.note(j, now)
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b job) int { return a.id.Compare(b.id) })
	return jobs, due
}

// job compares what an object should say with what it says.
func (r *reporter) job(id decode.ID, object client.Object, now time.Time) (job, bool) {
	if kept := withoutFinalizers(object.GetFinalizers()); len(kept) < len(object.GetFinalizers()) {
		after := copyOf(object)
		after.SetFinalizers(kept)
		return job{id: id, before: object, after: after, finalizers: true}, true
	}
	if object.GetDeletionTimestamp() != nil {
		return job{}, false
	}
	after := copyOf(object)
	s, ok := statusOf(after)
	if !ok {
		return job{}, false
	}
	v := verdict{
		findings: mesh.SortFindings(slices.Concat(r.findings[id], r.extra[id])), inForce: len(r.keys[id]) > 0, active: s.active,
		generation: object.GetGeneration(),
	}
	s.name(r.opts.Mesh, r.keys[id])
	*s.conditions = merge(*s.conditions, v.conditions(), metav1.NewTime(now.UTC().Truncate(time.Second)))
	*s.observed = new(object.GetGeneration())
	return job{id: id, before: object, after: after}, !equality.Semantic.DeepEqual(object, after)
}

// copyOf is a deep copy, which of an API object is one again.
func copyOf(object client.Object) client.Object {
	copied, ok := object.DeepCopyObject().(client.Object)
	if !ok {
		return object
	}
	return copied
}

// note plans the earliest time of the next write.
func (r *reporter) note(j job, now time.Time) {
	if j.finalizers {
		return
	}
	last := r.attempts[j.id]
	again := 0
	if last.wanted != nil && last.wanted.GetGeneration() == j.after.GetGeneration() && sameStatus(last.wanted, j.after) {
		again = last.again + 1
	}
	if again == quarrel {
		r.opts.Logger.Warn("the status of an object keeps being changed by something else: is another controller for appmesh.k8s.aws running?",
			slog.String("object", j.id.Kind+" "+j.id.Namespace+"/"+j.id.Name))
	}
	r.attempts[j.id] = attempt{next: now.Add(look << min(again, mostPatience)), wanted: j.after, again: again}
}

// sameStatus compares what two objects say, but for the times at which they began to.
func sameStatus(a, b client.Object) bool {
	left, _ := statusOf(copyOf(a))
	right, _ := statusOf(copyOf(b))
	for _, s := range []status{left, right} {
		if s.conditions == nil {
			return false
		}
		for i := range *s.conditions {
			(*s.conditions)[i].LastTransitionTime = nil
		}
	}
	return equality.Semantic.DeepEqual(*left.conditions, *right.conditions)
}

// do writes one object. It asks for exactly the state that it was computed from, so that whoever changed the object in between wins; what came of that is
// seen by the watch, and reported then.
func (r *reporter) do(ctx context.Context, j job) {
	written := copyOf(j.after)
	patch := client.MergeFromWithOptions(j.before, client.MergeFromWithOptimisticLock{})
	var err error
	if j.finalizers {
		err = r.client.Patch(ctx, written, patch)
	} else {
		err = r.client.Status().Patch(ctx, written, patch)
	}
	switch {
	case err == nil:
		if j.finalizers {
			r.opts.Logger.Info("took the finalizers of the original controller off", slog.String("object", j.id.Kind+" "+j.id.Namespace+"/"+j.id.Name))
		} else {
			r.announce(j.before, written)
		}
		r.replace(j, written)
		return
	case apierrors.IsNotFound(err):
		return
	case apierrors.IsConflict(err):
		r.opts.Logger.Debug("an object changed while its status was written", slog.String("object", j.id.Name))
	case ctx.Err() == nil:
		r.opts.Logger.Warn("cannot write the status of an object", slog.String("object", j.id.Kind+" "+j.id.Namespace+"/"+j.id.Name), slog.Any("error", err))
	}
	r.again(j, apierrors.IsConflict(err))
}

// replace notes what the API server has made of a write, unless the watch has already told of something newer.
func (r *reporter) replace(j job, written client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects[j.id] == j.before {
		r.objects[j.id] = written
		if j.finalizers && written.GetDeletionTimestamp() == nil {
			r.dirty[j.id] = struct{}{}
		}
	}
}

// again plans another write of an object after one that failed.
func (r *reporter) again(j job, conflict bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.objects[j.id] == nil {
		return
	}
	r.dirty[j.id] = struct{}{}
	last := r.attempts[j.id]
	last.wanted = nil
	last.next = r.opts.Clock.Now().Add(look)
	if conflict {
		last.next = r.opts.Clock.Now().Add(gather)
	}
	r.attempts[j.id] = last
}
