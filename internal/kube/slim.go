// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// slim drops from what is cached the parts that nothing reads: the history of fields, and most of each pod.
func slim(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		o.SetManagedFields(nil)
	}
	switch o := object.(type) {
	case *corev1.Pod:
		slimPod(o)
	case *metav1.PartialObjectMetadata:
		o.Annotations = nil
	}
	return object, nil
}

func slimPod(pod *corev1.Pod) {
	spec, status := pod.Spec, pod.Status
	pod.Spec = corev1.PodSpec{
		InitContainers: slimContainers(spec.InitContainers), Containers: slimContainers(spec.Containers),
		ServiceAccountName: spec.ServiceAccountName, NodeName: spec.NodeName, HostNetwork: spec.HostNetwork, ReadinessGates: spec.ReadinessGates,
	}
	pod.Status = corev1.PodStatus{
		Phase: status.Phase, PodIP: status.PodIP, PodIPs: status.PodIPs, StartTime: status.StartTime,
	}
	for _, condition := range status.Conditions {
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{Type: condition.Type, Status: condition.Status})
	}
	for name := range pod.Annotations {
		if !strings.HasPrefix(name, "appmesh.k8s.aws/") {
			delete(pod.Annotations, name)
		}
	}
}

// slimContainers keeps names, images, and the variables that say what a proxy stands for.
func slimContainers(containers []corev1.Container) []corev1.Container {
	list := make([]corev1.Container, 0, len(containers))
	for i := range containers {
		kept := corev1.Container{Name: containers[i].Name, Image: containers[i].Image}
		for _, env := range containers[i].Env {
			if strings.HasPrefix(env.Name, "APPMESH_") && env.Value != "" {
				kept.Env = append(kept.Env, corev1.EnvVar{Name: env.Name, Value: env.Value})
			}
		}
		list = append(list, kept)
	}
	return list
}
