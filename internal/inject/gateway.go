// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"github.com/tulle-mesh/tulle/internal/admission/review"
)

// gateway makes the pod's own container of that name the proxy of its gateway.
func (s *subject) gateway() error {
	i := index(s.pod.Spec.Containers, containerEnvoy)
	if i < 0 {
		var names []string
		for n := range s.pod.Spec.Containers {
			names = append(names, s.pod.Spec.Containers[n].Name)
		}
		return review.Refusef("%s belongs to %s, and a gateway's pod has its proxy in a container named %q; this one has %q. Call the container that is to be the proxy %q",
			s, s.member, containerEnvoy, names, containerEnvoy)
	}
	container, path := &s.pod.Spec.Containers[i], []string{"spec", "containers", strconv.Itoa(i)}
	at := func(more ...string) []string { return slices.Concat(path, more) }
	if s.pod.Annotations[annotationKeepImage] != "enabled" && container.Image != s.settings.Image {
		if err := s.doc.set(s.settings.Image, at("image")...); err != nil {
			return err
		}
	}
	for _, step := range []func(*corev1.Container, func(...string) []string) error{s.gatewayVariables, s.gatewayProbe, s.gatewayMounts} {
		if err := step(container, at); err != nil {
			return err
		}
	}
	return nil
}

// gatewayProbe adds what the container has not of its own: the readiness probe, and the drain before its end.
func (s *subject) gatewayProbe(container *corev1.Container, at func(...string) []string) error {
	if container.ReadinessProbe == nil {
		if err := s.doc.set(s.readinessProbe(), at("readinessProbe")...); err != nil {
			return err
		}
	}
	if container.Lifecycle != nil && container.Lifecycle.PreStop != nil {
		return nil
	}
	drain := corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{agentPath, "drain"}}}
	return s.doc.set(drain, at("lifecycle", "preStop")...)
}

// gatewayMounts adds the token, and the socket where certificates come from it.
func (s *subject) gatewayMounts(container *corev1.Container, at func(...string) []string) error {
	mounts, err := s.sdsMount()
	if err != nil {
		return err
	}
	if err := s.addOwn(tokenVolume()); err != nil {
		return err
	}
	for _, m := range append(mounts, corev1.VolumeMount{Name: volumeToken, MountPath: tokenPath, ReadOnly: true}) {
		if slices.ContainsFunc(container.VolumeMounts, func(have corev1.VolumeMount) bool { return have.MountPath == m.MountPath }) {
			continue
		}
		if err := s.doc.insert(last, m, at("volumeMounts")...); err != nil {
			return err
		}
	}
	return nil
}

// gatewayVariables writes what the mesh tells the proxy into the container's environment: over the container's own where it must, behind it where it is missing.
func (s *subject) gatewayVariables(container *corev1.Container, at func(...string) []string) error {
	list, err := s.variables()
	if err != nil {
		return err
	}
	for _, v := range list {
		found := false
		for n := range container.Env {
			if container.Env[n].Name != v.Name {
				continue
			}
			found = true
			if !v.fixed {
				continue
			}
			if err := s.overwrite(v.EnvVar, at("env", strconv.Itoa(n))); err != nil {
				return err
			}
		}
		if !found {
			if err := s.doc.insert(last, v.EnvVar, at("env")...); err != nil {
				return err
			}
		}
	}
	return nil
}

// overwrite sets a variable, and takes away whatever it had its value from.
func (s *subject) overwrite(env corev1.EnvVar, path []string) error {
	at := func(field string) []string { return append(slices.Clone(path), field) }
	if env.ValueFrom != nil {
		s.doc.remove(at("value")...)
		return s.doc.set(env.ValueFrom, at("valueFrom")...)
	}
	s.doc.remove(at("valueFrom")...)
	return s.doc.set(env.Value, at("value")...)
}
