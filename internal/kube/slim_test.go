// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

//nolint:paralleltest // the tests share a cluster, which a controller sees whole
func TestPodsAreWorkloadsWithTheirAddressAndReadiness(t *testing.T) {
	c := newCluster(t, "pods")
	r := start(t, nil)
	node := c.node("web")
	pod := &corev1.Pod{ObjectMeta: c.meta("web-1"), Spec: corev1.PodSpec{
		Containers: []corev1.Container{{Name: "web", Image: "web:1"}}, TerminationGracePeriodSeconds: new(int64(0)),
	}}
	pod.Labels = map[string]string{"app": "web"}
	c.create(c.mesh(), node, pod)
	expect := func(want string) {
		t.Helper()
		eventually(t, "the workload as "+want, func() (string, bool) {
			got := "none"
			if w, ok := r.store.Snapshot().Get(mesh.WorkloadKey("pods", "web_pods", "pods", "web-1")).(*mesh.Workload); ok {
				got = fmt.Sprintf("%v ready %v", w.Addresses, w.Ready)
			}
			return got, got == want
		})
	}
	expect("[] ready false")
	for _, state := range []corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse} {
		pod.Status = corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: "10.1.2.3", PodIPs: []corev1.PodIP{{IP: "10.1.2.3"}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: state}},
		}
		if err := c.Status().Update(t.Context(), pod); err != nil {
			t.Fatal(err)
		}
		expect(fmt.Sprintf("[10.1.2.3] ready %v", state == corev1.ConditionTrue))
	}
}
