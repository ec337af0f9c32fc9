// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta1"
	"github.com/tulle-mesh/tulle/api/v1beta2"
)

func TestNothingIsKeptOfObjectsThatAreGone(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Name: "a", Namespace: "x"}
	objects := []metav1.Object{
		&v1beta2.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1beta2.MeshSpec{NamespaceSelector: &metav1.LabelSelector{}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "x"}},
		&v1beta1.VirtualNode{ObjectMeta: meta, Spec: v1beta1.VirtualNodeSpec{MeshName: "m", Backends: []v1beta1.Backend{
			{VirtualService: v1beta1.VirtualServiceBackend{VirtualServiceName: "gone"}},
		}}},
		&v1beta1.VirtualService{ObjectMeta: meta, Spec: v1beta1.VirtualServiceSpec{MeshName: "m", Routes: []v1beta2.LegacyRoute{
			{Name: "r", TCP: &v1beta2.LegacyTCPRoute{Action: v1beta2.LegacyRouteAction{WeightedTargets: []v1beta2.LegacyWeightedTarget{
				{VirtualNodeName: "a"}, {VirtualNodeName: "gone.y"},
			}}}},
		}}},
		&v1beta2.VirtualGateway{ObjectMeta: meta},
		&v1beta2.GatewayRoute{ObjectMeta: meta},
		&v1beta2.BackendGroup{ObjectMeta: meta},
		&corev1.Pod{ObjectMeta: meta},
		&corev1.Service{ObjectMeta: meta},
	}
	d := New(Options{})
	for _, object := range objects {
		d.Set(Object{Object: object})
	}
	if changes := d.Flush(); len(changes.Set) == 0 || len(changes.Findings) == 0 {
		t.Fatalf("the objects mean nothing: %+v", changes)
	}
	for _, object := range objects {
		id, _ := IDOf(object)
		d.Delete(id)
	}
	d.Flush()
	if n := len(d.graph.cells); n != 0 {
		t.Errorf("%d cells are left: %v", n, d.graph.cells)
	}
	if n := len(d.made) + len(d.claimants) + len(d.provider) + len(d.reported) + len(d.members); n != 0 {
		t.Errorf("%d entries are left of objects that are gone", n)
	}
}
