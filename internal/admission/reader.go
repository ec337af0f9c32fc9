// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// FromReader returns a Lookup that reads with reader, which should be a cache: each creation lists the objects of its kind.
// It gets Namespaces, and lists Meshes, VirtualGateways and the objects of the kind at hand.
func FromReader(reader client.Reader) Lookup { return &readerLookup{reader: reader} }

type readerLookup struct{ reader client.Reader }

var _ Lookup = (*readerLookup)(nil)

// shared lets a cache hand out its own objects, which nothing here changes.
func shared() client.ListOption { return client.UnsafeDisableDeepCopy }

func (l *readerLookup) Meshes(ctx context.Context) ([]*v1beta2.Mesh, error) {
	list := &v1beta2.MeshList{}
	if err := l.reader.List(ctx, list, shared()); err != nil {
		return nil, err
	}
	return pointers(list.Items), nil
}

func (l *readerLookup) Gateways(ctx context.Context) ([]*v1beta2.VirtualGateway, error) {
	list := &v1beta2.VirtualGatewayList{}
	if err := l.reader.List(ctx, list, shared()); err != nil {
		return nil, err
	}
	return pointers(list.Items), nil
}

func (l *readerLookup) NamespaceLabels(ctx context.Context, name string) (labels.Set, bool, error) {
	// The whole object, not its metadata alone: the decoder's cache has it already.
	namespace := &corev1.Namespace{}
	err := l.reader.Get(ctx, client.ObjectKey{Name: name}, namespace)
	if apierrors.IsNotFound(err) {
		return nil, false, nil
	}
	return namespace.Labels, err == nil, err
}

// Holder returns the oldest object that has the name, as the decoder decides.
func (l *readerLookup) Holder(ctx context.Context, key mesh.Key) (string, error) {
	objects, err := l.objects(ctx, string(key.Kind))
	if err != nil {
		return "", fmt.Errorf("listing objects of kind %s: %w", key.Kind, err)
	}
	meshes, err := l.Meshes(ctx)
	if err != nil {
		return "", fmt.Errorf("listing meshes: %w", err)
	}
	gateways, err := l.Gateways(ctx)
	if err != nil {
		return "", fmt.Errorf("listing virtual gateways: %w", err)
	}
	var claims []metav1.Object
	for _, object := range objects {
		if s, ok := wrap(object); ok {
			if claimed, ok := s.key(meshes, gateways); ok && claimed == key {
				claims = append(claims, object)
			}
		}
	}
	if len(claims) == 0 {
		return "", nil
	}
	first := slices.MinFunc(claims, func(a, b metav1.Object) int {
		at, bt := a.GetCreationTimestamp(), b.GetCreationTimestamp()
		return cmp.Or(at.Compare(bt.Time), cmp.Compare(a.GetNamespace(), b.GetNamespace()), cmp.Compare(a.GetName(), b.GetName()))
	})
	if first.GetNamespace() == "" {
		return first.GetName(), nil
	}
	return first.GetNamespace() + "/" + first.GetName(), nil
}

func (l *readerLookup) objects(ctx context.Context, kind string) ([]metav1.Object, error) {
	switch kind {
	case kindMesh:
		list := &v1beta2.MeshList{}
		err := l.reader.List(ctx, list, shared())
		return items[v1beta2.Mesh](list.Items), err
	case kindVirtualNode:
		list := &v1beta2.VirtualNodeList{}
		err := l.reader.List(ctx, list, shared())
		return items[v1beta2.VirtualNode](list.Items), err
	case kindVirtualService:
		list := &v1beta2.VirtualServiceList{}
		err := l.reader.List(ctx, list, shared())
		return items[v1beta2.VirtualService](list.Items), err
	case kindVirtualRouter:
		list := &v1beta2.VirtualRouterList{}
		err := l.reader.List(ctx, list, shared())
		return items[v1beta2.VirtualRouter](list.Items), err
	case kindVirtualGateway:
		list := &v1beta2.VirtualGatewayList{}
		err := l.reader.List(ctx, list, shared())
		return items[v1beta2.VirtualGateway](list.Items), err
	case kindGatewayRoute:
		list := &v1beta2.GatewayRouteList{}
		err := l.reader.List(ctx, list, shared())
		return items[v1beta2.GatewayRoute](list.Items), err
	}
	return nil, nil
}

func pointers[T any](list []T) []*T {
	out := make([]*T, 0, len(list))
	for i := range list {
		out = append(out, &list[i])
	}
	return out
}

// items are the entries of a list as objects.
func items[T any, P interface {
	*T
	metav1.Object
}](list []T) []metav1.Object {
	out := make([]metav1.Object, 0, len(list))
	for i := range list {
		out = append(out, P(&list[i]))
	}
	return out
}
