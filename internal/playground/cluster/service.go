// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cluster

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// setService gives the Service what an API server would: defaults, and addresses that stay for its life.
func (c *Cluster) setService(s *corev1.Service) error {
	if s.Spec.Type == "" {
		s.Spec.Type = corev1.ServiceTypeClusterIP
	}
	for i := range s.Spec.Ports {
		p := &s.Spec.Ports[i]
		if p.Protocol == "" {
			p.Protocol = corev1.ProtocolTCP
		}
		if p.TargetPort == (intstr.IntOrString{}) {
			p.TargetPort = intstr.FromInt32(p.Port)
		}
	}
	if len(s.Spec.IPFamilies) == 0 {
		s.Spec.IPFamilies = slices.Clone(c.options.IPFamilies)
	}
	i := find(c.services, s.Namespace, s.Name)
	if i < 0 {
		i = len(c.services)
		c.services = append(c.services, s)
	}
	was := c.services[i]
	c.services[i] = s
	switch {
	case s.Spec.Type == corev1.ServiceTypeExternalName || s.Spec.ClusterIP == corev1.ClusterIPNone:
		return nil
	case was.Spec.ClusterIP != "" && was.Spec.ClusterIP != corev1.ClusterIPNone:
		s.Spec.ClusterIP, s.Spec.ClusterIPs, s.Spec.IPFamilies = was.Spec.ClusterIP, was.Spec.ClusterIPs, was.Spec.IPFamilies
		return nil
	}
	return c.giveAddresses(s, i+1)
}

func (c *Cluster) giveAddresses(s *corev1.Service, number int) error {
	all, err := c.options.Address(number)
	if err != nil {
		return err
	}
	s.Spec.ClusterIPs = nil
	for _, family := range s.Spec.IPFamilies {
		i := slices.IndexFunc(all, func(a netip.Addr) bool { return familyOf(a) == family })
		if i < 0 {
			return fmt.Errorf("spec.ipFamilies: this machine has no %s", family)
		}
		s.Spec.ClusterIPs = append(s.Spec.ClusterIPs, all[i].String())
	}
	s.Spec.ClusterIP = s.Spec.ClusterIPs[0]
	return nil
}

func familyOf(a netip.Addr) corev1.IPFamily {
	if a.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

// hasAddress says whether clients reach the Service at an address of its own.
func hasAddress(s *corev1.Service) bool {
	return s.Spec.Type != corev1.ServiceTypeExternalName && s.Spec.ClusterIP != corev1.ClusterIPNone
}

// ServicePort is one port of one Service address, with what stands behind it.
type ServicePort struct {
	Name      string
	Address   netip.Addr
	Protocol  corev1.Protocol
	Port      int
	Endpoints []netip.AddrPort
}

// ServicePorts lists what a node has to serve, in the order of the Services' creation.
func (c *Cluster) ServicePorts() ([]ServicePort, error) {
	var ports []ServicePort
	for _, s := range c.services {
		if !hasAddress(s) {
			continue
		}
		for _, ip := range s.Spec.ClusterIPs {
			address, err := netip.ParseAddr(ip)
			if err != nil {
				return nil, fmt.Errorf("spec.clusterIPs of Service %s/%s: %w", s.Namespace, s.Name, err)
			}
			for _, p := range s.Spec.Ports {
				endpoints, err := c.serving(s, p, familyOf(address))
				if err != nil {
					return nil, err
				}
				ports = append(ports, ServicePort{
					Name:    fmt.Sprintf("%s/%s:%d", s.Namespace, s.Name, p.Port),
					Address: address, Protocol: p.Protocol, Port: int(p.Port), Endpoints: endpoints,
				})
			}
		}
	}
	return ports, nil
}

// serving lists the addresses that get a Service port's connections: the ready pods or, if there are none, those that
// still serve while they end.
func (c *Cluster) serving(s *corev1.Service, p corev1.ServicePort, family corev1.IPFamily) ([]netip.AddrPort, error) {
	var readyOnes, endingOnes []netip.AddrPort
	for _, pod := range c.podsOf(s) {
		port, ok := targetPort(pod, p)
		ip := podIP(pod, family)
		if !ok || ip == "" || !isReady(pod) {
			continue
		}
		address, err := netip.ParseAddr(ip)
		if err != nil {
			return nil, fmt.Errorf("status.podIPs of Pod %s/%s: %w", pod.Namespace, pod.Name, err)
		}
		endpoint := netip.AddrPortFrom(address, uint16(port)) //nolint:gosec // the API's ports end at 65535
		if pod.DeletionTimestamp == nil {
			readyOnes = append(readyOnes, endpoint)
		} else {
			endingOnes = append(endingOnes, endpoint)
		}
	}
	if len(readyOnes) == 0 {
		return endingOnes, nil
	}
	return readyOnes, nil
}

// targetPort finds the pod's port that the Service's port leads to.
func targetPort(pod *corev1.Pod, p corev1.ServicePort) (int32, bool) {
	if p.TargetPort.Type == intstr.Int {
		return p.TargetPort.IntVal, true
	}
	for _, container := range pod.Spec.Containers {
		for _, port := range container.Ports {
			if port.Name == p.TargetPort.StrVal {
				return port.ContainerPort, true
			}
		}
	}
	return 0, false
}
