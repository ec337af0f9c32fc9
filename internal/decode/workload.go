// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"maps"
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// What v1beta1's injector and controller read from a pod to find its node.
const (
	annotationMesh        = "appmesh.k8s.aws/mesh"
	annotationVirtualNode = "appmesh.k8s.aws/virtualNode"
	envVirtualNodeName    = "APPMESH_VIRTUAL_NODE_NAME"
	envResourceARN        = "APPMESH_RESOURCE_ARN"
)

// readinessGate is the pod condition that the original controller asked for and set. Nothing sets it now, so a pod that
// waits for it counts by its containers.
const readinessGate corev1.PodConditionType = "conditions.appmesh.k8s.aws/aws-cloudmap-healthy"

// memberNode is a virtual node as a pod of its namespace sees it.
type memberNode struct {
	id       ID
	key      mesh.Key
	selector labels.Selector
	// legacy nodes without a podSelector take their pods by the name of the pod's owner.
	legacy     bool
	attributes map[string]string
}

// membersOf lists the nodes of a namespace that are in force.
func membersOf(r *reader, namespace string) []memberNode {
	var list []memberNode
	for _, id := range read[[]ID](r, indexIn(kindVirtualNode, namespace)) {
		node, in := get[*v1beta2.VirtualNode](r, id)
		self := identityOf(r, id)
		if in == nil || self == nil || self.mesh == "" || holder(r, self.key) != id {
			continue
		}
		member := memberNode{id: id, key: self.key, legacy: self.legacy && node.Spec.PodSelector == nil}
		// A selector at fault selects nothing; the node itself says so.
		member.selector = (&findings{}).selector("", node.Spec.PodSelector)
		if discovery := node.Spec.ServiceDiscovery; discovery != nil && discovery.AWSCloudMap != nil {
			member.attributes = map[string]string{}
			for _, attribute := range discovery.AWSCloudMap.Attributes {
				member.attributes[attribute.Key] = attribute.Value
			}
		}
		list = append(list, member)
	}
	return list
}

// workloads makes the pod a member of the nodes that it belongs to.
func workloads(r *reader, id ID) *content {
	pod, in := get[*corev1.Pod](r, id)
	if in == nil {
		return nil
	}
	if pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed {
		return nil
	}
	members := read[[]memberNode](r, cellKey{stage: stageMembers, id: ID{Namespace: id.Namespace}})
	nodes := selecting(pod, members)
	if len(nodes) == 0 {
		nodes = owning(r, pod, members)
	}
	if len(nodes) == 0 {
		return nil
	}
	f := findings{source: in.source}
	out := &content{}
	addresses := f.podAddresses(pod)
	for _, node := range nodes {
		out.objects = append(out.objects, &mesh.Workload{
			MeshName:    node.key.Mesh,
			NodeName:    node.key.Name,
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
	if len(nodes) > 1 {
		f.severalNodes(nodes)
	}
	out.findings = f.list
	return out
}

func (f *findings) severalNodes(nodes []memberNode) {
	names := make([]string, 0, len(nodes))
	for _, node := range nodes {
		names = append(names, node.id.Name)
	}
	f.add(problem{
		severity: mesh.SeverityWarning,
		reason:   mesh.ReasonRefAmbiguous,
		field:    "metadata.labels",
		message:  "this pod belongs to several VirtualNodes, and its proxy can stand for one: " + strings.Join(names, ", "),
		mend:     "narrow the podSelector of all but one of them",
	})
}

func selecting(pod *corev1.Pod, members []memberNode) []memberNode {
	var nodes []memberNode
	for _, node := range members {
		if node.selector.Matches(labels.Set(pod.Labels)) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// owning lists the nodes of v1beta1 that a pod belongs to: those that its annotation, else its containers' environment
// names, else those of the name of its owner.
func owning(r *reader, pod *corev1.Pod, members []memberNode) []memberNode {
	inMesh := func(string) bool { return true }
	if name, ok := pod.Annotations[annotationMesh]; ok {
		inMesh = func(mesh string) bool { return mesh == name }
	}
	named := func(name string, node memberNode) bool { return node.id.Name == name || node.key.Name == name }
	made := owner(r, pod)
	is := func(node memberNode) bool { return node.id.Name == made }
	if key, ok := nodeOfEnvironment(pod); ok {
		is = func(node memberNode) bool { return node.key == key }
	}
	if name, ok := pod.Annotations[annotationVirtualNode]; ok {
		is = func(node memberNode) bool { return named(name, node) }
	}
	var nodes []memberNode
	for _, node := range members {
		if node.legacy && inMesh(node.key.Mesh) && is(node) {
			nodes = append(nodes, node)
		}
	}
	return nodes
}

// nodeOfEnvironment is the node that a proxy's environment names.
func nodeOfEnvironment(pod *corev1.Pod) (mesh.Key, bool) {
	for i := range pod.Spec.Containers {
		for _, env := range pod.Spec.Containers[i].Env {
			if env.Name != envVirtualNodeName && env.Name != envResourceARN {
				continue
			}
			if key, err := mesh.ParseProxyID(env.Value); err == nil {
				return key, true
			}
		}
	}
	return mesh.Key{}, false
}

// owner is the name of the workload that made the pod: its controller, and where that is the ReplicaSet of a Deployment,
// the Deployment, whose name is the ReplicaSet's without the hash of the pod template. A pod made by hand has none.
func owner(r *reader, pod *corev1.Pod) string {
	controller := metav1.GetControllerOf(pod)
	if controller == nil {
		return ""
	}
	if controller.Kind != "ReplicaSet" {
		return controller.Name
	}
	if hash := pod.Labels["pod-template-hash"]; hash != "" {
		return strings.TrimSuffix(controller.Name, "-"+hash)
	}
	if dash := strings.LastIndexByte(controller.Name, '-'); dash > 0 {
		deployment := ID{Kind: kindDeployment, Namespace: pod.Namespace, Name: controller.Name[:dash]}
		if read[*input](r, cellKey{stage: stageInput, id: deployment}) != nil {
			return deployment.Name
		}
	}
	return controller.Name
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
func attributes(pod *corev1.Pod, node memberNode) map[string]string {
	out := make(map[string]string, len(pod.Labels)+len(node.attributes)+4)
	maps.Copy(out, pod.Labels)
	maps.Copy(out, node.attributes)
	out["k8s.io/pod"] = pod.Name
	out["k8s.io/namespace"] = pod.Namespace
	out["appmesh.k8s.aws/mesh"] = node.key.Mesh
	out["appmesh.k8s.aws/virtualNode"] = node.key.Name
	return out
}
