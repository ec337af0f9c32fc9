// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cluster

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// endpointSlices are those that Kubernetes would make for the Service: one for each of its address families; none for a
// Service without a selector.
func (c *Cluster) endpointSlices(s *corev1.Service) []*discoveryv1.EndpointSlice {
	if len(s.Spec.Selector) == 0 || s.Spec.Type == corev1.ServiceTypeExternalName {
		return nil
	}
	var slices []*discoveryv1.EndpointSlice
	for _, family := range s.Spec.IPFamilies {
		slices = append(slices, c.endpointSlice(s, family))
	}
	return slices
}

func (c *Cluster) endpointSlice(s *corev1.Service, family corev1.IPFamily) *discoveryv1.EndpointSlice {
	slice := &discoveryv1.EndpointSlice{
		TypeMeta: metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
		ObjectMeta: metav1.ObjectMeta{
			Name: s.Name + "-" + suffix(s.Namespace, s.Name, string(family)), Namespace: s.Namespace,
			Labels: withLabel(s.Labels, discoveryv1.LabelServiceName, s.Name),
		},
		AddressType: discoveryv1.AddressType(family),
	}
	pods := c.podsOf(s)
	for _, p := range s.Spec.Ports {
		port := discoveryv1.EndpointPort{Name: new(p.Name), Protocol: new(p.Protocol), AppProtocol: p.AppProtocol}
		for _, pod := range pods {
			if number, ok := targetPort(pod, p); ok {
				port.Port = new(number)
				break
			}
		}
		if port.Port != nil {
			slice.Ports = append(slice.Ports, port)
		}
	}
	for _, pod := range pods {
		ip := podIP(pod, family)
		if ip == "" {
			continue
		}
		serving, terminating := isReady(pod), pod.DeletionTimestamp != nil
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{ip},
			Conditions: discoveryv1.EndpointConditions{
				Ready: new(serving && !terminating), Serving: new(serving), Terminating: new(terminating),
			},
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name},
			NodeName:  new(nodeName),
		})
	}
	return slice
}
