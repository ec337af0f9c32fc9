// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// xrayLogLevel is the level as the daemon takes it; empty for its own.
func xrayLogLevel(text string) (string, error) {
	switch level := strings.ToLower(text); level {
	case "", "prod":
		return "", nil
	case "dev", "debug", "info", "warn", "error":
		return level, nil
	}
	return "", fmt.Errorf("%q: want dev, debug, info, prod, warn or error", text)
}

// xray adds the daemon of AWS X-Ray, which takes spans from the proxy.
func (s *subject) xray() error {
	if !s.settings.XRay.Enabled {
		if _, asked := s.pod.Annotations[annotationXRayConfig]; asked {
			s.warn("the annotation %s has no effect: --enable-xray-tracing is off", annotationXRayConfig)
		}
		return nil
	}
	if s.has(containerXRay) {
		return nil
	}
	c := s.settings.XRay
	resources, err := s.resources(!s.isGateway())
	if err != nil {
		return err
	}
	security := confined()
	security.ReadOnlyRootFilesystem = nil // the image is not ours
	container := corev1.Container{
		Name: containerXRay, Image: c.Image, Resources: resources,
		Env:             []corev1.EnvVar{{Name: "AWS_REGION", Value: s.settings.Region}},
		Ports:           []corev1.ContainerPort{{Name: "xray", ContainerPort: int32(c.Port), Protocol: corev1.ProtocolUDP}},
		SecurityContext: security,
	}
	if level, _ := xrayLogLevel(c.LogLevel); level != "" { // checked with the settings
		container.Args = append(container.Args, "--log-level", level)
	}
	if c.RoleARN != "" {
		container.Args = append(container.Args, "--role-arn", c.RoleARN)
	}
	mounts, err := s.mounts(annotationXRayConfig)
	if err != nil {
		return err
	}
	if len(mounts) > 1 {
		return s.wrong(annotationXRayConfig, "%q: want one NAME:/PATH", s.pod.Annotations[annotationXRayConfig])
	}
	for _, m := range mounts {
		if s.volumeOf(m.volume) == nil {
			return s.wrong(annotationXRayConfig, "the pod has no volume %q: add it to spec.volumes, or correct the name", m.volume)
		}
		container.Args = nil
		container.Command = []string{"/xray", "--config", strings.TrimSuffix(m.path, "/") + "/xray-daemon.yaml"}
		container.VolumeMounts = []corev1.VolumeMount{{Name: m.volume, MountPath: m.path, ReadOnly: true}}
	}
	if !s.isNative() {
		return s.doc.insert(last, container, "spec", "containers")
	}
	// Beside a native sidecar it is one too, or a Job would not end.
	container.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
	init, _ := s.doc.at("spec", "initContainers").([]any)
	place := 1 + slices.IndexFunc(init, func(c any) bool {
		fields, _ := c.(map[string]any)
		return fields["name"] == containerEnvoy
	})
	return s.doc.insert(place, container, "spec", "initContainers")
}
