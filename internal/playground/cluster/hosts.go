// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cluster

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Hosts is the /etc/hosts of the pod: its own name, and every Service under all names that the cluster's DNS would
// answer to in the pod's namespace. Services come in the order of their creation, so that a new one leaves the lines
// before it where they are.
func (c *Cluster) Hosts(pod *corev1.Pod) []byte {
	var b strings.Builder
	b.WriteString("127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n")
	for _, ip := range pod.Status.PodIPs {
		_, _ = fmt.Fprintf(&b, "%s\t%s\n", ip.IP, pod.Name)
	}
	for _, s := range c.services {
		if !hasAddress(s) {
			continue
		}
		name := s.Name + "." + s.Namespace
		names := []string{name, name + ".svc", name + ".svc." + c.options.Domain}
		if s.Namespace == pod.Namespace {
			names = append(names, s.Name)
		}
		for _, ip := range s.Spec.ClusterIPs {
			_, _ = fmt.Fprintf(&b, "%s\t%s\n", ip, strings.Join(names, " "))
		}
	}
	return []byte(b.String())
}
