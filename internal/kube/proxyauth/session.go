// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package proxyauth

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// session is one stream of a proxy.
type session struct {
	holder

	node   mesh.Key
	revoke func(error)
}

// register keeps the session until its stream has ended.
func (a *Authenticator) register(ctx context.Context, s *session) {
	a.mu.Lock()
	of := a.sessions[s.key()]
	if of == nil {
		of = map[*session]struct{}{}
		a.sessions[s.key()] = of
	}
	of[s] = struct{}{}
	a.mu.Unlock()
	context.AfterFunc(ctx, func() { a.forget(s) })
}

func (a *Authenticator) forget(s *session) {
	a.mu.Lock()
	defer a.mu.Unlock()
	of := a.sessions[s.key()]
	delete(of, s)
	if len(of) == 0 {
		delete(a.sessions, s.key())
	}
}

// calm is the least time between two looks at all sessions.
const calm = 500 * time.Millisecond

// Run ends the streams of proxies that may no longer be what they are, until ctx ends, which is a good end.
func (a *Authenticator) Run(ctx context.Context) error {
	for _, kind := range []client.Object{&corev1.Pod{}, &corev1.Namespace{}, &v1beta2.Mesh{}, &v1beta2.VirtualNode{}, &v1beta2.VirtualGateway{}} {
		if err := a.opts.Observe(ctx, kind, toolscache.ResourceEventHandlerFuncs{
			AddFunc:    func(object any) { a.note(nil, object) },
			UpdateFunc: a.note,
			DeleteFunc: func(object any) { a.note(object, nil) },
		}); err != nil {
			if ctx.Err() != nil {
				return nil //nolint:nilerr // the end that was asked for is no error
			}
			return fmt.Errorf("authentication of proxies: %w", err)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-a.changed:
			a.look(ctx)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-a.opts.Clock.After(calm):
		}
	}
}

// note is told of each change that an informer sees, nil for what is not there, and has sessions looked at where it may matter.
func (a *Authenticator) note(before, after any) {
	if before != nil && after != nil && sameBelonging(before, after) {
		return
	}
	if pod := podIn(before, after); pod != nil {
		if !a.mark(client.ObjectKeyFromObject(pod)) {
			return
		}
	} else {
		a.rosters.clear()
		a.mu.Lock()
		a.all = true
		a.mu.Unlock()
	}
	select {
	case a.changed <- struct{}{}:
	default:
	}
}

func podIn(objects ...any) *corev1.Pod {
	for _, object := range objects {
		if late, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = late.Obj
		}
		if pod, ok := object.(*corev1.Pod); ok {
			return pod
		}
	}
	return nil
}

// mark has a pod's sessions looked at, if it has any.
func (a *Authenticator) mark(pod client.ObjectKey) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	_, has := a.sessions[pod]
	if has {
		a.pods[pod] = struct{}{}
	}
	return has
}

// sameBelonging says that nothing differs which decides what belongs to what.
func sameBelonging(before, after any) bool {
	b, ok := before.(client.Object)
	n, now := after.(client.Object)
	if !ok || !now || b.GetUID() != n.GetUID() || !equality.Semantic.DeepEqual(b.GetLabels(), n.GetLabels()) ||
		!equality.Semantic.DeepEqual(b.GetAnnotations(), n.GetAnnotations()) {
		return false
	}
	switch o := after.(type) {
	case *v1beta2.VirtualNode, *v1beta2.VirtualGateway, *v1beta2.Mesh:
		return b.GetGeneration() == n.GetGeneration()
	case *corev1.Pod:
		was, _ := before.(*corev1.Pod)
		return was != nil && equality.Semantic.DeepEqual(was.OwnerReferences, o.OwnerReferences)
	}
	return true
}

// look ends the sessions that no longer hold.
func (a *Authenticator) look(ctx context.Context) {
	for _, s := range a.marked() {
		err := a.check(ctx, s)
		if code := status.Code(err); code != codes.PermissionDenied && code != codes.Unauthenticated {
			continue // it holds, or nobody can tell now
		}
		a.opts.Logger.Info("a proxy may no longer be what it is", slog.String("pod", s.namespace+"/"+s.pod), slog.String("node", s.node.String()), slog.Any("why", err))
		a.forget(s)
		s.revoke(err)
	}
}

// marked takes the sessions to look at.
func (a *Authenticator) marked() []*session {
	a.mu.Lock()
	defer a.mu.Unlock()
	var list []*session
	for pod, of := range a.sessions {
		if _, marked := a.pods[pod]; marked || a.all {
			list = slices.AppendSeq(list, maps.Keys(of))
		}
	}
	a.all = false
	clear(a.pods)
	return list
}
