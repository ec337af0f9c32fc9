// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// pullSecretName is that of the original's image pull secret.
const pullSecretName = "appmesh-ecr-secret" //nolint:gosec // G101: the name of a secret

// fsGroup lets the proxy's user read what the kubelet projects into the pod for it, unless the pod has a group already.
func (s *subject) fsGroup() error {
	if !s.settings.FSGroup || s.pod.Spec.SecurityContext != nil && s.pod.Spec.SecurityContext.FSGroup != nil {
		return nil
	}
	return s.doc.set(int64(proxyUser), "spec", "securityContext", "fsGroup")
}

// pullSecret lets the kubelet fetch the proxy's image from a registry that asks for a password.
func (s *subject) pullSecret() error {
	reference := corev1.LocalObjectReference{Name: pullSecretName}
	if !s.settings.PullSecret || slices.Contains(s.pod.Spec.ImagePullSecrets, reference) {
		return nil
	}
	return s.doc.insert(last, reference, "spec", "imagePullSecrets")
}

// conflicts warns of what the pod's own containers do that the proxy cannot live with.
func (s *subject) conflicts() {
	for _, list := range [][]corev1.Container{s.pod.Spec.InitContainers, s.pod.Spec.Containers} {
		for i := range list {
			c := &list[i]
			if c.Name == containerEnvoy {
				continue
			}
			if runsAs(s.pod, c) == proxyUser {
				s.warn("the container %q runs as user %d, the proxy's: its connections are not captured", c.Name, proxyUser)
			}
			for _, port := range c.Ports {
				if slices.Contains([]int32{ingressPort, egressPort, int32(s.settings.AdminPort)}, port.ContainerPort) && port.Protocol != corev1.ProtocolUDP {
					s.warn("the container %q has port %d, which the proxy needs for itself", c.Name, port.ContainerPort)
				}
			}
		}
	}
	for _, gate := range s.pod.Spec.ReadinessGates {
		if gate.ConditionType == "conditions.appmesh.k8s.aws/aws-cloudmap-healthy" {
			s.warn("the readiness gate %s is never met, for nothing is asked of AWS Cloud Map: take it out, or the pod does not become ready", gate.ConditionType)
		}
	}
}

// runsAs is the user of a container as far as the pod says; -1 where it does not.
func runsAs(pod *corev1.Pod, c *corev1.Container) int64 {
	switch {
	case c.SecurityContext != nil && c.SecurityContext.RunAsUser != nil:
		return *c.SecurityContext.RunAsUser
	case pod.Spec.SecurityContext != nil && pod.Spec.SecurityContext.RunAsUser != nil:
		return *pod.Spec.SecurityContext.RunAsUser
	}
	return -1
}
