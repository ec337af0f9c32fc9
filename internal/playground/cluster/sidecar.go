// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cluster

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
)

const (
	injectionKey   = "appmesh.k8s.aws/sidecarInjectorWebhook"
	virtualNodeKey = "appmesh.k8s.aws/virtualNode"
	group          = "appmesh.k8s.aws"
)

// Sidecar is what the injector would tell the proxy of a pod.
type Sidecar struct {
	// Node is the virtual node's short ARN.
	Node string
	// Ports are the virtual node's, whose inbound connections the proxy gets.
	Ports []int
}

// Sidecar says what proxy a new pod gets: nil if its namespace, or itself, does not want one, or no virtual node is its own.
func (c *Cluster) Sidecar(pod *corev1.Pod) (*Sidecar, error) {
	wanted := pod.Annotations[injectionKey]
	if ns := c.objects[Key{Kind: "Namespace", Name: pod.Namespace}]; ns != nil && wanted == "" {
		wanted = ns.GetLabels()[injectionKey]
	}
	if wanted != "enabled" {
		return nil, nil //nolint:nilnil // no sidecar and no error: most pods
	}
	for _, key := range slices.SortedFunc(maps.Keys(c.objects), func(a, b Key) int { return strings.Compare(a.String(), b.String()) }) {
		if key.Group != group || key.Kind != "VirtualNode" || key.Namespace != pod.Namespace {
			continue
		}
		node := c.objects[key]
		mine, err := selects(node, pod)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		if !mine {
			continue
		}
		mesh, err := c.meshOf(node)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		return &Sidecar{Node: "mesh/" + mesh + "/virtualNode/" + nodeNameOf(node), Ports: listenerPorts(node)}, nil
	}
	return nil, nil //nolint:nilnil // as above
}

// isOld says whether an object is of the first version of the API.
func isOld(o *unstructured.Unstructured) bool { return o.GroupVersionKind().Version == "v1beta1" }

// selects says whether the pod is a member of the node: by podSelector or, in the first version, by the name of its
// workload or the pod's own annotation.
func selects(node *unstructured.Unstructured, pod *corev1.Pod) (bool, error) {
	if isOld(node) {
		name := pod.Annotations[virtualNodeKey]
		return name == nodeNameOf(node) || (name == "" && WorkloadOf(pod) == node.GetName()), nil
	}
	fields, found, err := unstructured.NestedMap(node.Object, "spec", "podSelector")
	if err != nil || !found {
		return false, err
	}
	return matches(fields, pod.Labels)
}

func matches(selector map[string]any, set map[string]string) (bool, error) {
	typed, err := as[metav1.LabelSelector](&unstructured.Unstructured{Object: selector})
	if err != nil {
		return false, err
	}
	s, err := metav1.LabelSelectorAsSelector(typed)
	if err != nil {
		return false, fmt.Errorf("selector: %w", err)
	}
	return s.Matches(labels.Set(set)), nil
}

// nodeNameOf is the node's name in the App Mesh API.
func nodeNameOf(node *unstructured.Unstructured) string {
	if isOld(node) {
		return node.GetName() + "-" + node.GetNamespace()
	}
	if name, _, _ := unstructured.NestedString(node.Object, "spec", "awsName"); name != "" {
		return name
	}
	return node.GetName() + "_" + node.GetNamespace()
}

// meshOf is the name of the mesh that the node belongs to: the one that it names, or that selects its namespace.
func (c *Cluster) meshOf(node *unstructured.Unstructured) (string, error) {
	for _, path := range [][]string{{"spec", "meshName"}, {"spec", "meshRef", "name"}} {
		if name, _, _ := unstructured.NestedString(node.Object, path...); name != "" {
			return name, nil
		}
	}
	var set map[string]string
	if ns := c.objects[Key{Kind: "Namespace", Name: node.GetNamespace()}]; ns != nil {
		set = ns.GetLabels()
	}
	var names []string
	for key, o := range c.objects {
		selector, found, err := unstructured.NestedMap(o.Object, "spec", "namespaceSelector")
		if key.Group != group || key.Kind != "Mesh" || !found || err != nil {
			continue
		}
		ok, err := matches(selector, set)
		if err != nil {
			return "", fmt.Errorf("%s: %w", key, err)
		}
		if ok {
			names = append(names, key.Name)
		}
	}
	if len(names) != 1 {
		return "", fmt.Errorf("%d meshes select namespace %s, want one", len(names), node.GetNamespace())
	}
	return names[0], nil
}

func listenerPorts(node *unstructured.Unstructured) []int {
	var ports []int
	listeners, _, _ := unstructured.NestedSlice(node.Object, "spec", "listeners")
	for _, l := range listeners {
		fields, _ := l.(map[string]any)
		// A number's type depends on how it was written, so go by its text.
		value, found, _ := unstructured.NestedFieldNoCopy(fields, "portMapping", "port")
		if port, err := strconv.Atoi(fmt.Sprint(value)); found && err == nil {
			ports = append(ports, port)
		}
	}
	return ports
}
