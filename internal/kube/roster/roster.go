// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package roster reads from a cluster what the pods of a namespace can belong to. Whoever has to know which proxy a pod stands for may call it: the pod
// webhook and the authenticator of proxies. The rules themselves are decode's.
package roster

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/decode"
)

// Read finds what the pods of a namespace can belong to. The reader, which should be a cache, lists VirtualNodes, VirtualGateways and Meshes, and gets the
// Namespace; one that is not there has no labels. A ReplicaSet's pod without the label pod-template-hash counts as made by the ReplicaSet.
func Read(ctx context.Context, reader client.Reader, options decode.Options, namespace string) (*decode.Roster, error) {
	var nodes v1beta2.VirtualNodeList
	var gateways v1beta2.VirtualGatewayList
	var meshes v1beta2.MeshList
	for kind, list := range map[string]client.ObjectList{"VirtualNodes": &nodes, "VirtualGateways": &gateways, "Meshes": &meshes} {
		// What a cache hands out is its own, and nothing here changes it.
		if err := reader.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing %s: %w", kind, err)
		}
	}
	var objects []decode.Object
	for i := range meshes.Items {
		objects = append(objects, decode.Object{Object: &meshes.Items[i]})
	}
	objects = append(objects, claiming(namespace, pointers(nodes.Items))...)
	objects = append(objects, claiming(namespace, pointers(gateways.Items))...)
	space := &corev1.Namespace{}
	switch err := reader.Get(ctx, client.ObjectKey{Name: namespace}, space); {
	case err == nil:
		objects = append(objects, decode.Object{Object: space})
	case !apierrors.IsNotFound(err):
		return nil, fmt.Errorf("reading namespace %s: %w", namespace, err)
	}
	return decode.NewRoster(options, namespace, objects), nil
}

// claiming are the objects of a namespace, and those of others that claim one of their names.
func claiming(namespace string, all []metav1.Object) []decode.Object {
	claimed := map[string]struct{}{}
	for _, object := range all {
		if name, ok := decode.ClaimedName(object); ok && object.GetNamespace() == namespace {
			claimed[name] = struct{}{}
		}
	}
	var list []decode.Object
	for _, object := range all {
		name, _ := decode.ClaimedName(object)
		if _, ok := claimed[name]; ok {
			list = append(list, decode.Object{Object: object})
		}
	}
	return list
}

func pointers[T any, P interface {
	*T
	metav1.Object
}](items []T) []metav1.Object {
	out := make([]metav1.Object, 0, len(items))
	for i := range items {
		out = append(out, P(&items[i]))
	}
	return out
}
