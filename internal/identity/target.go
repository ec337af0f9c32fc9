// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package identity

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// targetKind is a kind of object that says whom the API server trusts.
type targetKind struct {
	name     string
	resource schema.GroupVersionResource
	// plan says what must change in an object.
	plan func(ctx context.Context, t *target, object *unstructured.Unstructured) ([]operation, error)
}

// The kinds of targets.
var (
	mutatingWebhooks = targetKind{
		"MutatingWebhookConfiguration",
		schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "mutatingwebhookconfigurations"},
		planWebhooks,
	}
	validatingWebhooks = targetKind{
		"ValidatingWebhookConfiguration",
		schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: "validatingwebhookconfigurations"},
		planWebhooks,
	}
	definitions = targetKind{
		"CustomResourceDefinition",
		schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
		planDefinition,
	}
)

// The times between two writes of one object: the first is at once, and each that undoes somebody else's waits twice as long as the one before.
const (
	shortestCalm = 2 * time.Second
	longestCalm  = 5 * time.Minute
)

// target is one object that is told whom to trust.
type target struct {
	identity *Identity
	kind     targetKind
	name     string
	objects  dynamic.ResourceInterface
	store    cache.Store
	changed  chan struct{}
	// settled says that the object is as it should be, or does not exist.
	settled atomic.Bool
	// converts says that the object is a definition whose conversion is led to our Service.
	converts atomic.Bool

	// told is the bundle of the last write, written when, and calm the least time until the next. They are the running goroutine's alone.
	told    string
	written time.Time
	calm    time.Duration
	// complaint is what was logged last, so that it is logged once.
	complaint string
}

func newTarget(i *Identity, objects dynamic.Interface, kind targetKind, name string) *target {
	return &target{identity: i, kind: kind, name: name, objects: objects.Resource(kind.resource), changed: make(chan struct{}, 1)}
}

// String is the kind and name.
func (t *target) String() string { return t.kind.name + " " + t.name }

// look makes the target be looked at soon.
func (t *target) look() {
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// run keeps the object as it should be until ctx ends. It does nothing before there is a certificate.
func (t *target) run(ctx context.Context) {
	select {
	case <-ctx.Done():
		return
	case <-t.identity.ready:
	}
	informer := t.informer()
	done := make(chan struct{})
	go func() { defer close(done); informer.RunWithContext(ctx) }()
	if cache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
		t.loop(ctx)
	}
	<-done
}

func (t *target) informer() cache.Controller {
	only := fields.OneTermEqualSelector("metadata.name", t.name).String()
	store, informer := cache.NewInformerWithOptions(cache.InformerOptions{
		ListerWatcher: &cache.ListWatch{
			ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
				options.FieldSelector = only
				return t.objects.List(ctx, options)
			},
			WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
				options.FieldSelector = only
				return t.objects.Watch(ctx, options)
			},
		},
		ObjectType: &unstructured.Unstructured{}, Transform: slim,
		Handler: cache.ResourceEventHandlerFuncs{
			AddFunc:    func(any) { t.look() },
			UpdateFunc: func(any, any) { t.look() },
			DeleteFunc: func(any) { t.look() },
		},
	})
	t.store = store
	return informer
}

// slim drops from what is cached what is not looked at, which of a definition is nearly all.
func slim(object any) (any, error) {
	if o, ok := object.(*unstructured.Unstructured); ok {
		o.SetManagedFields(nil)
		o.SetAnnotations(withoutLong(o.GetAnnotations()))
		unstructured.RemoveNestedField(o.Object, "spec", "versions")
		unstructured.RemoveNestedField(o.Object, "status")
	}
	return object, nil
}

func withoutLong(annotations map[string]string) map[string]string {
	delete(annotations, "kubectl.kubernetes.io/last-applied-configuration")
	return annotations
}

func (t *target) loop(ctx context.Context) {
	for {
		wait := t.tend(ctx)
		var again <-chan time.Time
		if wait > 0 {
			again = t.identity.opts.Clock.After(wait)
		}
		select {
		case <-ctx.Done():
			return
		case <-t.changed:
		case <-again:
		}
	}
}

// tend brings the object into shape, and says when to try again; 0 for not before something changes.
func (t *target) tend(ctx context.Context) time.Duration {
	found, exists, err := t.store.GetByKey(t.name)
	object, ok := found.(*unstructured.Unstructured)
	if err != nil || !exists || !ok {
		t.settled.Store(true)
		return 0
	}
	operations, err := t.kind.plan(ctx, t, object)
	if err != nil {
		t.settled.Store(false)
		t.complain(err)
		return longestWait
	}
	if len(operations) == 0 {
		t.settled.Store(true)
		t.complaint = ""
		return 0
	}
	t.settled.Store(false)
	now, bundle := t.identity.opts.Clock.Now(), string(t.identity.CABundle())
	undone := t.told == bundle // what we wrote was written over
	if next := t.written.Add(t.calm); undone && now.Before(next) {
		return next.Sub(now)
	}
	return t.write(ctx, object, operations, bundle, undone)
}

func (t *target) write(ctx context.Context, object *unstructured.Unstructured, operations []operation, bundle string, undone bool) time.Duration {
	now := t.identity.opts.Clock.Now()
	patch, err := json.Marshal(append([]operation{{Op: "test", Path: "/metadata/resourceVersion", Value: object.GetResourceVersion()}}, operations...))
	if err != nil {
		t.complain(err)
		return longestWait
	}
	if _, err = t.objects.Patch(ctx, t.name, types.JSONPatchType, patch, metav1.PatchOptions{}); err != nil {
		if !apierrors.IsInvalid(err) && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) && ctx.Err() == nil { // else it has changed, and the watch will tell
			t.complain(fmt.Errorf("it cannot be written: %w", err))
		}
		return retry
	}
	log := t.identity.opts.Logger
	switch {
	case !undone || now.Sub(t.written) > 2*longestCalm:
		t.calm = shortestCalm
		log.Info("the API server was told whom to trust", slog.String("object", t.String()))
	default:
		t.calm = min(2*t.calm, longestCalm)
		log.Warn("somebody else overwrote whom the API server shall trust; put back",
			slog.String("object", t.String()), slog.Duration("notAgainFor", t.calm), slog.String("mend", "see who writes it: kubectl get --show-managed-fields -o yaml"))
	}
	t.told, t.written = bundle, now
	return 0
}

func (t *target) complain(err error) {
	if text := err.Error(); text != t.complaint {
		t.complaint = text
		t.identity.opts.Logger.Error("the API server cannot be told whom to trust", slog.String("object", t.String()), slog.Any("error", err))
	}
}
