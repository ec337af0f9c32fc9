// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package installation

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// checkStuck looks for objects and namespaces that are being deleted and do not go.
func (k *checkup) checkStuck(ctx context.Context) error {
	for i := range k.definitions {
		d := &k.definitions[i]
		if d.Spec.Group != v1beta2.Group {
			continue
		}
		for _, v := range d.Spec.Versions {
			if !v.Storage {
				continue // one is enough, and this one needs no conversion
			}
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(schema.GroupVersionKind{Group: d.Spec.Group, Version: v.Name, Kind: d.Spec.Names.Kind + "List"})
			err := k.list(ctx, d.Spec.Names.Plural+"."+d.Spec.Group, list, func() {
				for i := range list.Items {
					k.checkDeleted(&list.Items[i], d.Spec.Names.Kind, d.Spec.Names.Plural)
				}
			})
			if err != nil && !meta.IsNoMatchError(err) && !apierrors.IsNotFound(err) { // it may just have gone
				return err
			}
		}
	}
	for i := range k.namespaces {
		k.checkLeaving(&k.namespaces[i])
	}
	return nil
}

func (k *checkup) checkDeleted(o *metav1.PartialObjectMetadata, kind, plural string) {
	if !k.longAgo(o.DeletionTimestamp) || len(o.Finalizers) == 0 {
		return
	}
	in := ""
	if o.Namespace != "" {
		in = "-n " + o.Namespace + " "
	}
	k.wrong(ReasonStuck, mesh.Source{Kind: kind, Namespace: o.Namespace, Name: o.Name},
		fmt.Sprintf("this object is being deleted since %s and waits for its finalizers (%s): until they go, its namespace cannot go either. Those of App Mesh's controllers are taken off by the control plane, if it runs",
			o.DeletionTimestamp.UTC().Format("2006-01-02 15:04"), strings.Join(o.Finalizers, ", ")),
		fmt.Sprintf(`kubectl %spatch %s %s --type=merge -p '{"metadata":{"finalizers":null}}'`, in, plural, o.Name))
}

func (k *checkup) checkLeaving(n *corev1.Namespace) {
	if !k.longAgo(n.DeletionTimestamp) {
		return
	}
	for _, c := range n.Status.Conditions {
		if c.Status == corev1.ConditionTrue && strings.Contains(c.Message, "appmesh") {
			k.wrong(ReasonStuck, mesh.Source{Kind: "Namespace", Name: n.Name}, "this namespace is being deleted and does not go: "+c.Message,
				"mend what this list says of webhooks, definitions and finalizers; the namespace then goes by itself")
			return
		}
	}
}
