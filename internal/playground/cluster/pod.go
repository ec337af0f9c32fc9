// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cluster

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"net/netip"
	"slices"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/rand"
)

// nodeName is the one node of the cluster.
const nodeName = "playground"

// Workloads lists the Deployments in the order of their creation.
func (c *Cluster) Workloads() []Key {
	keys := make([]Key, len(c.deployments))
	for i, d := range c.deployments {
		keys[i] = deploymentKey(d)
	}
	return keys
}

func deploymentKey(d *appsv1.Deployment) Key {
	return Key{Group: "apps", Kind: "Deployment", Namespace: d.Namespace, Name: d.Name}
}

// Restart makes the next Desired of the workload ask for new pods.
func (c *Cluster) Restart(namespace, name string) error {
	i := find(c.deployments, namespace, name)
	if i < 0 {
		return fmt.Errorf("no Deployment %s/%s", namespace, name)
	}
	c.restarts[deploymentKey(c.deployments[i])]++
	return nil
}

// Desired returns the pods that the workload should have: those of its present template. A pod of the same name that
// exists already is to stay, others of the workload are to go.
func (c *Cluster) Desired(workload Key) ([]*corev1.Pod, error) {
	i := find(c.deployments, workload.Namespace, workload.Name)
	if i < 0 {
		return nil, fmt.Errorf("no %s", workload)
	}
	d := c.deployments[i]
	template := d.Spec.Template.DeepCopy()
	hash, err := templateHash(template, c.restarts[workload])
	if err != nil {
		return nil, fmt.Errorf("%s: %w", workload, err)
	}
	replicas := int32(1)
	if d.Spec.Replicas != nil {
		replicas = *d.Spec.Replicas
	}
	var pods []*corev1.Pod
	for n := range replicas {
		pods = append(pods, newPod(d, template, hash, n))
	}
	return pods, nil
}

func newPod(d *appsv1.Deployment, template *corev1.PodTemplateSpec, hash string, ordinal int32) *corev1.Pod {
	set := d.Name + "-" + hash
	pod := &corev1.Pod{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: *template.ObjectMeta.DeepCopy(),
		Spec:       *template.Spec.DeepCopy(),
	}
	pod.Name, pod.Namespace = set+"-"+suffix(set, strconv.Itoa(int(ordinal))), d.Namespace
	pod.Labels = withLabel(template.Labels, "pod-template-hash", hash)
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: set, Controller: new(true), BlockOwnerDeletion: new(true)}}
	pod.Spec.NodeName = nodeName
	pod.Status.Phase = corev1.PodPending
	return pod
}

func withLabel(from map[string]string, key, value string) map[string]string {
	all := maps.Clone(from)
	if all == nil {
		all = map[string]string{}
	}
	all[key] = value
	return all
}

// templateHash is what a ReplicaSet's name ends with: it changes with the template, and with each restart.
func templateHash(template *corev1.PodTemplateSpec, restarts int) (string, error) {
	data, err := json.Marshal(template)
	if err != nil {
		return "", fmt.Errorf("encoding spec.template: %w", err)
	}
	return encodedHash(string(data), strconv.Itoa(restarts)), nil
}

// suffix is the five characters that a generated name ends with. The same name gets the same ones in every run.
func suffix(words ...string) string { return (encodedHash(words...) + "bcdfg")[:5] }

func encodedHash(words ...string) string {
	h := fnv.New32a()
	for _, w := range words {
		_, _ = h.Write([]byte(w + "\x00"))
	}
	return rand.SafeEncodeString(strconv.FormatUint(uint64(h.Sum32()), 10))
}

// Pods lists the pods in the order of their creation.
func (c *Cluster) Pods() []*corev1.Pod { return slices.Clone(c.pods) }

// PodsOf lists the workload's pods in the order of their creation.
func (c *Cluster) PodsOf(workload Key) []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range c.pods {
		if pod.Namespace == workload.Namespace && WorkloadOf(pod) == workload.Name {
			pods = append(pods, pod)
		}
	}
	return pods
}

// WorkloadOf is the name of the Deployment that the pod belongs to: its ReplicaSet's without the hash.
func WorkloadOf(pod *corev1.Pod) string {
	if len(pod.OwnerReferences) == 0 {
		return pod.Name
	}
	set := pod.OwnerReferences[0].Name
	return set[:len(set)-len(pod.Labels["pod-template-hash"])-1]
}

// AddPod adds a pod that has got its addresses and is not ready yet.
func (c *Cluster) AddPod(pod *corev1.Pod, addresses []netip.Addr) {
	pod.Status.Phase = corev1.PodRunning
	pod.Status.PodIP = addresses[0].String()
	for _, a := range addresses {
		pod.Status.PodIPs = append(pod.Status.PodIPs, corev1.PodIP{IP: a.String()})
	}
	setReady(pod, corev1.ConditionFalse)
	c.pods = append(c.pods, pod)
}

// Ready marks the pod as ready.
func (c *Cluster) Ready(pod *corev1.Pod) { setReady(pod, corev1.ConditionTrue) }

// Terminating marks the pod as on its way out.
func (c *Cluster) Terminating(pod *corev1.Pod, since metav1.Time) {
	pod.DeletionTimestamp = &since
	pod.DeletionGracePeriodSeconds = new(int64(30))
}

// RemovePod removes the pod.
func (c *Cluster) RemovePod(pod *corev1.Pod) {
	c.pods = slices.DeleteFunc(c.pods, func(p *corev1.Pod) bool { return p == pod })
}

func setReady(pod *corev1.Pod, status corev1.ConditionStatus) {
	pod.Status.Conditions = []corev1.PodCondition{
		{Type: corev1.PodReady, Status: status},
		{Type: corev1.ContainersReady, Status: status},
	}
}

func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// podIP is the pod's address of the family, or "".
func podIP(pod *corev1.Pod, family corev1.IPFamily) string {
	for _, ip := range pod.Status.PodIPs {
		if a, err := netip.ParseAddr(ip.IP); err == nil && familyOf(a) == family {
			return ip.IP
		}
	}
	return ""
}

// podsOf lists the pods that the Service selects; none without a selector.
func (c *Cluster) podsOf(s *corev1.Service) []*corev1.Pod {
	if len(s.Spec.Selector) == 0 {
		return nil
	}
	selector := labels.SelectorFromSet(s.Spec.Selector)
	var pods []*corev1.Pod
	for _, pod := range c.pods {
		if pod.Namespace == s.Namespace && selector.Matches(labels.Set(pod.Labels)) {
			pods = append(pods, pod)
		}
	}
	return pods
}
