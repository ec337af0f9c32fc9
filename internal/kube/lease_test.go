// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube_test

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/kube"
)

//nolint:paralleltest // the tests share a cluster, which a controller sees whole
func TestTheLeaseGoesWithTheDeployment(t *testing.T) {
	c := newCluster(t, "lease")
	if err := coordinationv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "mesh-controller", Namespace: c.namespace},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "x"}},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			},
		},
	}
	c.create(deployment)
	start(t, func(o *kube.Options) {
		o.Namespace, o.LeaderElection, o.Deployment = c.namespace, true, deployment.Name
	})
	lease := &coordinationv1.Lease{}
	key := client.ObjectKey{Namespace: c.namespace, Name: kube.LeaseName}
	held := func() (string, bool) {
		err := c.Get(t.Context(), key, lease)
		return "none", err == nil && lease.Spec.HolderIdentity != nil
	}
	eventually(t, "a lease", held)
	first := lease.Spec.RenewTime.Time
	eventually(t, "a renewed lease", func() (string, bool) {
		_, ok := held()
		return "not renewed", ok && lease.Spec.RenewTime.After(first)
	})
	if owners := lease.OwnerReferences; len(owners) != 1 || owners[0].UID != deployment.UID {
		t.Errorf("owners %v, want the Deployment", owners)
	}
	if err := c.Delete(t.Context(), lease); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the lease again, while the Deployment is there", held)
	if len(lease.OwnerReferences) != 1 {
		t.Errorf("owners %v, want the Deployment", lease.OwnerReferences)
	}
}
