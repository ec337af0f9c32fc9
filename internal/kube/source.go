// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/decode"
)

// Run watches the cluster until ctx ends, which is a good end. Where a kind is missing it waits for it.
func (c *Controller) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.cache.Start(ctx) })
	g.Go(func() error {
		q := newQueue(c.opts.Clock)
		if err := c.watch(ctx, q); err != nil {
			return ended(ctx, err)
		}
		newFeed(c.opts, c.reporter, c.placeholders).run(ctx, q)
		return nil
	})
	g.Go(func() error {
		return c.lead(ctx, func(ctx context.Context) {
			var work sync.WaitGroup
			work.Go(func() { c.placeholders.run(ctx) })
			c.reporter.run(ctx)
			work.Wait()
		})
	})
	return g.Wait()
}

// ended makes an error nil that says only that ctx has ended.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // the end that was asked for is no error
	}
	return err
}

// watch leads all watched kinds to q, and returns once it holds everything that there is.
func (c *Controller) watch(ctx context.Context, q *queue) error {
	var synced []toolscache.InformerSynced
	for _, object := range watched() {
		informer, err := c.informer(ctx, object)
		if err != nil {
			return err
		}
		registration, err := informer.AddEventHandler(q)
		if err != nil {
			return fmt.Errorf("watching %T: %w", object, err)
		}
		synced = append(synced, registration.HasSynced)
	}
	if !toolscache.WaitForCacheSync(ctx.Done(), synced...) {
		return errors.New("the cluster was not read to its end")
	}
	return nil
}

// informer waits until the cluster serves the object's kind.
func (c *Controller) informer(ctx context.Context, object client.Object) (cache.Informer, error) {
	for {
		informer, err := c.cache.GetInformer(ctx, object, cache.BlockUntilSynced(false))
		if err == nil {
			return informer, nil
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		mend := "the API server is asked again until it answers"
		if meta.IsNoMatchError(err) {
			mend = "apply the CustomResourceDefinitions of the chart appmesh-controller; nothing is served until they are there"
		}
		c.opts.Logger.Error("cannot watch a kind", slog.Any("error", err), slog.String("mend", mend))
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-c.opts.Clock.After(retry):
		}
	}
}

// feed is the one goroutine's way from changed objects to changes of the model.
type feed struct {
	opts     Options
	decoder  *decode.Decoder
	reporter *reporter
	services *placeholders
	// seen is what the decoder was given of each object whose status or heartbeat may change without any meaning.
	seen map[decode.ID]metav1.Object
}

func newFeed(o Options, r *reporter, p *placeholders) *feed {
	return &feed{opts: o, decoder: decode.New(o.Decode), reporter: r, services: p, seen: map[decode.ID]metav1.Object{}}
}

// run applies the state that q holds as one step, then each change at once; those that come while it is worked on are taken together.
func (f *feed) run(ctx context.Context, q *queue) {
	f.step(ctx, q, true)
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.ready:
			f.step(ctx, q, false)
		}
	}
}

func (f *feed) step(ctx context.Context, q *queue, first bool) {
	objects, since := q.take()
	for id, object := range objects {
		switch {
		case object == nil:
			delete(f.seen, id)
			f.decoder.Delete(id)
		case !sameMeaning(f.seen[id], object):
			if reportedKind(id.Kind) || id.Kind == kindDeployment {
				f.seen[id] = object
			}
			f.decoder.Set(decode.Object{Object: object})
		}
	}
	changes := f.decoder.Flush()
	if first || !changes.Empty() {
		changes.Since = since
		f.opts.Apply(ctx, changes)
	}
	f.reporter.observe(objects, changes)
	f.services.observe(objects)
}

const kindDeployment = "Deployment"

// sameMeaning says that nothing that decoding reads differs: only status, or what others note in the metadata.
func sameMeaning(before, after metav1.Object) bool {
	if before == nil || before.GetUID() != after.GetUID() {
		return false
	}
	if _, ok := after.(*metav1.PartialObjectMetadata); ok {
		return true
	}
	return before.GetGeneration() == after.GetGeneration() && after.GetGeneration() != 0 &&
		maps.Equal(before.GetLabels(), after.GetLabels()) && maps.Equal(before.GetAnnotations(), after.GetAnnotations()) &&
		equality.Semantic.DeepEqual(before.GetDeletionTimestamp(), after.GetDeletionTimestamp())
}
