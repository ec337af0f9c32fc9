// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package installation_test

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/clock"
)

// hang makes an object whose finalizer nobody takes off until the test ends.
func (k *lab) hang(o client.Object) {
	k.t.Helper()
	o.SetFinalizers([]string{"finalizers.appmesh.k8s.aws/mesh-members"})
	k.make(o)
	k.t.Cleanup(func() {
		if err := k.Patch(context.Background(), o, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
			k.t.Error(err)
		}
	})
}

func deletionFaults() map[string]fault {
	return map[string]fault{
		"an object that hangs in deletion": {
			harm: func(k *lab) {
				m := &v1beta2.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "hangs"}}
				k.hang(m)
				if err := k.Delete(k.t.Context(), m); err != nil {
					k.t.Fatal(err)
				}
			},
			later: time.Hour,
			want:  []string{"error Stuck Mesh hangs: this object is being deleted since …finalizers.appmesh.k8s.aws/mesh-members…| kubectl patch meshes hangs --type=merge -p '{\"metadata\":{\"finalizers\":null}}'"},
		},
		"a definition that hangs in deletion": {
			harm: func(k *lab) {
				const name = "backendgroups.appmesh.k8s.aws"
				again := k.definition(name)
				k.t.Cleanup(func() {
					k.eventually("the end of the definition", func() bool {
						return apierrors.IsNotFound(k.Get(context.Background(), client.ObjectKey{Name: name}, &apiextensionsv1.CustomResourceDefinition{}))
					})
					again.ResourceVersion, again.UID = "", ""
					if err := k.Create(context.Background(), again); err != nil {
						k.t.Error(err)
					}
				})
				k.hang(&v1beta2.BackendGroup{ObjectMeta: inside("plain", "hangs")})
				if err := k.Delete(k.t.Context(), k.definition(name)); err != nil {
					k.t.Fatal(err)
				}
				k.eventually("the deletion of its objects", func() bool {
					b := &v1beta2.BackendGroup{ObjectMeta: inside("plain", "hangs")}
					return k.Get(k.t.Context(), client.ObjectKeyFromObject(b), b) == nil && b.DeletionTimestamp != nil
				})
			},
			later: time.Hour,
			want: []string{
				"error Stuck CustomResourceDefinition backendgroups.appmesh.k8s.aws: this definition is being deleted and waits for its objects…| kubectl get backendgroups -A…",
				"error Stuck BackendGroup plain/hangs: this object is being deleted since …| kubectl -n plain patch backendgroups hangs…",
			},
		},
		"a namespace that hangs in deletion": {
			harm: func(k *lab) {
				n := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "leaving"}}
				k.make(n)
				if err := k.Delete(k.t.Context(), n); err != nil {
					k.t.Fatal(err)
				}
				if err := k.Get(k.t.Context(), client.ObjectKeyFromObject(n), n); err != nil {
					k.t.Fatal(err)
				}
				n.Status.Conditions = []corev1.NamespaceCondition{{
					Type: corev1.NamespaceFinalizersRemaining, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(clock.Real{}.Now()),
					Message: "Some content in the namespace has finalizers remaining: finalizers.appmesh.k8s.aws/aws-appmesh-resources in 1 resource instances",
				}}
				if err := k.Status().Update(k.t.Context(), n); err != nil {
					k.t.Fatal(err)
				}
				k.t.Cleanup(func() {
					n.Spec.Finalizers = nil
					if err := k.SubResource("finalize").Update(context.Background(), n); err != nil {
						k.t.Error(err)
					}
				})
			},
			later: time.Hour,
			want:  []string{"error Stuck Namespace leaving: this namespace is being deleted and does not go: Some content…finalizers.appmesh.k8s.aws/aws-appmesh-resources…|…"},
		},
	}
}
