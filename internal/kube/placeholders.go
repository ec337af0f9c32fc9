// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// placeholders keeps the placeholder Services on the leader. It works when something that they depend on has changed, and writes nothing while nothing does.
type placeholders struct {
	opts   Options
	client client.Client
	cache  client.Reader
	wake   chan struct{}
	// leading is held by the one run that may write.
	leading sync.Mutex
	// read closes when the cluster's whole state has been seen: until then a virtual service that is missing may only be late.
	read     chan struct{}
	readOnce sync.Once
	// looked are the versions at which labelled Services were last read whole.
	looked map[client.ObjectKey]string
	// denied says that the role does not allow placeholders, which is said once.
	denied bool
	// odd is the annotation that was last complained of, by mesh.
	odd map[string]string
}

func newPlaceholders(o Options, c client.Client, cache client.Reader) *placeholders {
	return &placeholders{
		opts: o, client: client.WithFieldOwner(c, placeholderManager), cache: cache, wake: make(chan struct{}, 1), read: make(chan struct{}),
		looked: map[client.ObjectKey]string{}, odd: map[string]string{},
	}
}

// observe is told of each step of the source after it has been applied.
func (p *placeholders) observe(objects map[decode.ID]metav1.Object) {
	p.readOnce.Do(func() { close(p.read) })
	for id := range objects {
		switch id.Kind {
		case string(mesh.KindMesh), string(mesh.KindVirtualService), string(mesh.KindVirtualRouter), string(mesh.KindVirtualNode), string(mesh.KindService):
			select {
			case p.wake <- struct{}{}:
			default:
			}
			return
		}
	}
}

// run keeps them until ctx ends.
func (p *placeholders) run(ctx context.Context) {
	if p.opts.Snapshot == nil {
		return
	}
	p.leading.Lock()
	defer p.leading.Unlock()
	select {
	case <-ctx.Done():
		return
	case <-p.read:
	}
	for {
		var again <-chan time.Time
		switch done := p.keep(ctx); {
		case done:
			p.denied = false
		case p.denied:
			again = p.opts.Clock.After(deniedRetry)
		default:
			again = p.opts.Clock.After(look)
		}
		select {
		case <-ctx.Done():
			return
		case <-again:
			continue
		case <-p.wake:
		}
		select {
		case <-ctx.Done():
			return
		case <-p.opts.Clock.After(gather):
		}
	}
}

// deniedRetry is how often something is tried again that the role did not allow.
const deniedRetry = time.Minute

// keep brings the cluster to what is wanted once, and says whether it has come all the way.
func (p *placeholders) keep(ctx context.Context) bool {
	wanted, err := p.wanted(ctx)
	var there corev1.ServiceList
	if err == nil {
		err = p.cache.List(ctx, &there, client.HasLabels{PlaceholderLabel})
	}
	if err != nil {
		if ctx.Err() == nil {
			p.opts.Logger.Warn("cannot tell which placeholder Services are wanted", slog.Any("error", err))
		}
		return false
	}
	done := true
	labelled := map[client.ObjectKey]bool{}
	for i := range there.Items {
		key := client.ObjectKeyFromObject(&there.Items[i])
		labelled[key] = true
		done = p.settle(ctx, &there.Items[i], wanted[key]) && done
	}
	for key := range p.looked {
		if !labelled[key] {
			delete(p.looked, key)
		}
	}
	for key, service := range wanted {
		if !labelled[key] && len(service.Spec.Ports) > 0 {
			done = p.create(ctx, key, service) && done
		}
	}
	return done
}

// wanted are the placeholders that there should be. One without ports waits for them.
func (p *placeholders) wanted(ctx context.Context) (map[client.ObjectKey]*corev1.Service, error) {
	now := p.opts.Snapshot()
	meshes, err := p.meshes(ctx, now)
	if err != nil || len(meshes) == 0 {
		return nil, err
	}
	var services v1beta2.VirtualServiceList
	if err := p.cache.List(ctx, &services); err != nil {
		return nil, err
	}
	all := map[client.ObjectKey]*corev1.Service{}
	slices.SortFunc(services.Items, func(a, b v1beta2.VirtualService) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	for i := range services.Items {
		service := inForce(now, meshes, &services.Items[i])
		if service == nil {
			continue
		}
		host, ok := placeholderName(service.Name, service.Source.Namespace, now.Options().Domain())
		key := client.ObjectKey{Namespace: service.Source.Namespace, Name: host}
		if ok && all[key] == nil {
			all[key] = placeholder(host, service, placeholderPorts(now, service))
		}
	}
	return all, nil
}

// meshes are the App Mesh names of those meshes whose virtual services get placeholders.
func (p *placeholders) meshes(ctx context.Context, now mesh.Reader) ([]string, error) {
	var list v1beta2.MeshList
	if err := p.cache.List(ctx, &list); err != nil {
		return nil, err
	}
	var names []string
	for i := range list.Items {
		m := &list.Items[i]
		wants, understood := wantsPlaceholders(m, p.opts.Placeholders)
		p.complain(m, understood)
		name := cmp.Or(deref(m.Spec.AWSName), m.Name)
		if known, ok := now.Get(mesh.MeshKey(name)).(*mesh.Mesh); wants && ok && known.Source.Name == m.Name {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// inForce is what a custom resource has become in one of the meshes; nil where it is in none of them, or another has its name.
func inForce(now mesh.Reader, meshes []string, object *v1beta2.VirtualService) *mesh.VirtualService {
	name := cmp.Or(deref(object.Spec.AWSName), object.Name+"."+object.Namespace)
	for _, m := range meshes {
		service, ok := now.Get(mesh.VirtualServiceKey(m, name)).(*mesh.VirtualService)
		if ok && service.Source.Namespace == object.Namespace && service.Source.Name == object.Name {
			return service
		}
	}
	return nil
}

func deref(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}

// complain says once that an annotation has a value that means nothing.
func (p *placeholders) complain(m *v1beta2.Mesh, understood bool) {
	value := m.Annotations[PlaceholderAnnotation]
	if understood {
		delete(p.odd, m.Name)
	} else if p.odd[m.Name] != value {
		p.odd[m.Name] = value
		p.opts.Logger.Warn("an annotation of a mesh means nothing", slog.String("mesh", m.Name), slog.String("annotation", PlaceholderAnnotation),
			slog.String("value", value), slog.String("mend", "want enabled or disabled"))
	}
}

// settle brings one placeholder that exists to what is wanted, nil for nothing: changed, deleted, or released where it has become somebody's own.
func (p *placeholders) settle(ctx context.Context, cached, want *corev1.Service) bool {
	key := client.ObjectKeyFromObject(cached)
	wrong := want == nil || len(want.Spec.Ports) > 0 && !samePorts(cached.Spec.Ports, want.Spec.Ports)
	if cached.DeletionTimestamp != nil || p.looked[key] == cached.ResourceVersion && !wrong {
		return true
	}
	// Who has written what is not in the cache.
	whole := &corev1.Service{}
	if err := p.client.Get(ctx, key, whole); err != nil {
		return p.outcome(ctx, "read", key, client.IgnoreNotFound(err))
	}
	if whole.Labels[PlaceholderLabel] == "" || whole.DeletionTimestamp != nil {
		return true // the watch tells of it
	}
	lock := client.MergeFromWithOptions(whole.DeepCopy(), client.MergeFromWithOptimisticLock{})
	switch {
	case claimed(whole):
		p.opts.Logger.Info("a placeholder Service has become somebody's own and is left alone from now on", slog.String("service", key.String()))
		return p.outcome(ctx, "release", key, p.client.Patch(ctx, released(whole), lock))
	case want == nil:
		exactly := client.Preconditions{UID: &whole.UID, ResourceVersion: &whole.ResourceVersion}
		return p.outcome(ctx, "delete", key, client.IgnoreNotFound(p.client.Delete(ctx, whole, exactly)))
	case wrong && !samePorts(whole.Spec.Ports, want.Spec.Ports):
		changed := whole.DeepCopy()
		changed.Spec.Ports = want.Spec.Ports
		return p.outcome(ctx, "change", key, p.client.Patch(ctx, changed, lock))
	default:
		p.looked[key] = whole.ResourceVersion
		return true
	}
}

func (p *placeholders) create(ctx context.Context, key client.ObjectKey, service *corev1.Service) bool {
	var other corev1.Service
	if err := p.cache.Get(ctx, key, &other); err == nil {
		return true // it is somebody's own
	}
	err := p.client.Create(ctx, service)
	if apierrors.IsAlreadyExists(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return true
	}
	return p.outcome(ctx, "create", key, err)
}

// outcome logs what went wrong. Who changed the Service in between wins, and the watch tells of it.
func (p *placeholders) outcome(ctx context.Context, what string, key client.ObjectKey, err error) bool {
	if err == nil {
		return true
	}
	denied := apierrors.IsForbidden(err)
	if denied && !p.denied {
		p.opts.Logger.Error("a mesh asks for placeholder Services, and the controller's role does not allow them", slog.String("service", key.String()), slog.Any("error", err),
			slog.String("mend", "set the chart's value placeholderServices to annotated or true, or take the annotation "+PlaceholderAnnotation+" off the mesh"))
	}
	p.denied = p.denied || denied
	if ctx.Err() == nil && !denied && !apierrors.IsConflict(err) {
		p.opts.Logger.Warn("cannot "+what+" a placeholder Service", slog.String("service", key.String()), slog.Any("error", err))
	}
	return false
}
