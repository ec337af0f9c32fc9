// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"maps"
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// readinessGate is the pod condition that the original controller asked for and set. Nothing sets it now, so a pod that
// waits for it counts by its containers.
const readinessGate corev1.PodConditionType = "conditions.appmesh.k8s.aws/aws-cloudmap-healthy"

// workloads makes the pod a member of the nodes that it belongs to.
func workloads(r *reader, id ID) *content {
	pod, in := get[*corev1.Pod](r, id)
	if in == nil {
		return nil
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	roster := read[*Roster](r, cellKey{stage: stageMembers, id: ID{Namespace: id.Namespace}})
	if roster == nil {
		return nil
	}
	belongs := roster.membership(pod, func(name string) bool {
		return read[*input](r, cellKey{stage: stageInput, id: ID{Kind: kindDeployment, Namespace: id.Namespace, Name: name}}) != nil
	})
	if len(belongs.Members) == 0 {
		return nil
	}
	f := findings{source: in.source}
	out := &content{}
	addresses := f.podAddresses(pod)
	for _, node := range belongs.Members {
		if node.Key.Kind != mesh.KindVirtualNode {
			continue
		}
		out.objects = append(out.objects, &mesh.Workload{
			MeshName:    node.Key.Mesh,
			NodeName:    node.Key.Name,
			Namespace:   id.Namespace,
			Name:        id.Name,
			Addresses:   addresses,
			Ready:       ready(pod),
			Terminating: pod.DeletionTimestamp != nil,
			Zone:        pod.Labels[corev1.LabelTopologyZone],
			Attributes:  attributes(pod, node),
			Source:      in.source,
		})
	}
	if len(belongs.Members) > 1 {
		f.severalProxies(belongs)
	}
	out.findings = f.list
	return out
}

func (f *findings) severalProxies(belongs Membership) {
	f.add(problem{
		severity: mesh.SeverityWarning,
		reason:   mesh.ReasonRefAmbiguous,
		field:    "metadata.labels",
		message:  "this pod belongs to several objects, and its proxy can stand for one: " + Names(belongs.Members),
		mend:     "narrow the podSelector of all but one of them",
	})
}

func ready(pod *corev1.Pod) bool {
	want := corev1.PodReady
	for _, gate := range pod.Spec.ReadinessGates {
		if gate.ConditionType == readinessGate {
			want = corev1.ContainersReady
		}
	}
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == want {
			return pod.Status.Conditions[i].Status == corev1.ConditionTrue
		}
	}
	return false
}

func (f *findings) podAddresses(pod *corev1.Pod) []netip.Addr {
	var list []netip.Addr
	for _, ip := range pod.Status.PodIPs {
		if address, ok := f.address("status.podIPs", ip.IP); ok {
			list = append(list, address)
		}
	}
	if len(list) == 0 && pod.Status.PodIP != "" {
		if address, ok := f.address("status.podIP", pod.Status.PodIP); ok {
			list = append(list, address)
		}
	}
	return list
}

// attributes are what the pod's instance in AWS Cloud Map carried.
func attributes(pod *corev1.Pod, node Member) map[string]string {
	out := make(map[string]string, len(pod.Labels)+len(node.attributes)+4)
	maps.Copy(out, pod.Labels)
	maps.Copy(out, node.attributes)
	out["k8s.io/pod"] = pod.Name
	out["k8s.io/namespace"] = pod.Namespace
	out["appmesh.k8s.aws/mesh"] = node.Key.Mesh
	out["appmesh.k8s.aws/virtualNode"] = node.Key.Name
	return out
}
