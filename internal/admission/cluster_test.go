// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// cluster is a cache with what a test put there. It is a client.Reader, so that tests go through FromReader.
type cluster struct {
	namespaces []*corev1.Namespace
	objects    []metav1.Object
	// down makes every read fail.
	down bool
}

var errDown = errors.New("the cache has not started")

func newCluster(t *testing.T, objects []json.RawMessage) Lookup {
	t.Helper()
	c := &cluster{}
	for _, raw := range objects {
		c.add(t, raw)
	}
	return FromReader(c)
}

func (c *cluster) add(t *testing.T, raw json.RawMessage) {
	t.Helper()
	var meta metav1.TypeMeta
	if err := json.Unmarshal(raw, &meta); err != nil {
		t.Fatal(err)
	}
	if meta.Kind == "Namespace" {
		namespace := &corev1.Namespace{}
		if err := json.Unmarshal(raw, namespace); err != nil {
			t.Fatal(err)
		}
		c.namespaces = append(c.namespaces, namespace)
		return
	}
	s, err := read(meta.Kind, converted(t, raw))
	if err != nil {
		t.Fatal(err)
	}
	c.objects = append(c.objects, s.object)
}

func (c *cluster) Get(_ context.Context, key client.ObjectKey, object client.Object, _ ...client.GetOption) error {
	if c.down {
		return errDown
	}
	for _, namespace := range c.namespaces {
		if namespace.Name == key.Name {
			namespace.DeepCopyInto(object.(*corev1.Namespace))
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, key.Name)
}

func (c *cluster) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if c.down {
		return errDown
	}
	for _, object := range c.objects {
		switch l := list.(type) {
		case *v1beta2.MeshList:
			appendTo(&l.Items, object)
		case *v1beta2.VirtualNodeList:
			appendTo(&l.Items, object)
		case *v1beta2.VirtualServiceList:
			appendTo(&l.Items, object)
		case *v1beta2.VirtualRouterList:
			appendTo(&l.Items, object)
		case *v1beta2.VirtualGatewayList:
			appendTo(&l.Items, object)
		case *v1beta2.GatewayRouteList:
			appendTo(&l.Items, object)
		}
	}
	return nil
}

func appendTo[T any](list *[]T, object any) {
	if o, ok := object.(*T); ok {
		*list = append(*list, *o)
	}
}
