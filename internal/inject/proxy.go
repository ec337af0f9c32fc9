// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"
)

// agentPath is where the image has the agent.
const agentPath = "/usr/bin/tulle-agent"

// nativeSince is the first version of Kubernetes whose init containers can go on running without having asked for it.
const nativeSince = "1.29.0"

// isNative says that the proxy is an init container that goes on running.
func (s *subject) isNative() bool {
	switch s.annotated(annotationSidecarMode, s.settings.SidecarMode) {
	case SidecarNative:
		return true
	case SidecarClassic:
		return false
	}
	have, err := version.ParseGeneric(s.serverVersion)
	return err == nil && have.AtLeast(version.MustParseGeneric(nativeSince))
}

// proxy adds the container of a node's proxy.
func (s *subject) proxy() error {
	if mode, ok := s.pod.Annotations[annotationSidecarMode]; ok && !slices.Contains([]string{SidecarNative, SidecarClassic, SidecarAuto}, mode) {
		return s.wrong(annotationSidecarMode, "%q: want native, classic or auto", mode)
	}
	if err := s.addVolumes(); err != nil {
		return err
	}
	container, err := s.container()
	if err != nil {
		return err
	}
	if s.isNative() {
		container.RestartPolicy = new(corev1.ContainerRestartPolicyAlways)
		place := 0
		if init, ok := s.doc.at("spec", "initContainers", "0").(map[string]any); ok && init["name"] == containerInit {
			place = 1
		}
		return s.doc.insert(place, container, "spec", "initContainers")
	}
	if owner := metav1.GetControllerOf(s.pod); owner != nil && owner.Kind == "Job" {
		s.warn("its Job does not end while the proxy runs beside it: use a native sidecar, with the annotation %s: native", annotationSidecarMode)
	}
	if !s.settings.WaitUntilReady {
		return s.doc.insert(last, container, "spec", "containers")
	}
	// Containers start in order, each once the hook of the one before has ended.
	container.Lifecycle.PostStart = &corev1.LifecycleHandler{Exec: &corev1.ExecAction{
		Command: []string{agentPath, "ready", "--wait", fmt.Sprintf("%ds", s.settings.ReadyTimeout)},
	}}
	if len(s.pod.Spec.Containers) > 0 {
		const shown = "kubectl.kubernetes.io/default-container"
		if _, chosen := s.pod.Annotations[shown]; !chosen {
			if err := s.annotate(map[string]string{shown: s.pod.Spec.Containers[0].Name}); err != nil {
				return err
			}
		}
	}
	return s.doc.insert(0, container, "spec", "containers")
}

// container is the proxy's, as a classic one.
func (s *subject) container() (corev1.Container, error) {
	env, err := s.environment()
	if err != nil {
		return corev1.Container{}, err
	}
	resources, err := s.resources(true)
	if err != nil {
		return corev1.Container{}, err
	}
	mounts, err := s.proxyMounts()
	if err != nil {
		return corev1.Container{}, err
	}
	return corev1.Container{
		Name: containerEnvoy, Image: s.settings.Image, Env: env, Resources: resources, VolumeMounts: mounts,
		Ports:           []corev1.ContainerPort{{Name: "stats", ContainerPort: int32(s.settings.AdminPort), Protocol: corev1.ProtocolTCP}},
		StartupProbe:    s.startupProbe(),
		ReadinessProbe:  s.readinessProbe(),
		Lifecycle:       &corev1.Lifecycle{PreStop: &corev1.LifecycleHandler{Exec: &corev1.ExecAction{Command: []string{agentPath, "drain"}}}},
		SecurityContext: confined(),
	}, nil
}

// confined is the security of containers that need nothing of their host.
func confined() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		RunAsUser: new(int64(proxyUser)), RunAsGroup: new(int64(proxyUser)), RunAsNonRoot: new(true),
		AllowPrivilegeEscalation: new(false), ReadOnlyRootFilesystem: new(true),
		Capabilities:   &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
}

// readinessProbe asks Envoy on the pod's own address, where the agent opens that page and the statistics alone. Envoy is not ready before it has configuration,
// and no more once it drains.
func (s *subject) readinessProbe() *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:        s.ready(),
		InitialDelaySeconds: s.settings.ReadinessDelay, PeriodSeconds: s.settings.ReadinessPeriod, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: 3,
	}
}

// startupProbe is quick, so that a pod is ready as soon as its proxy is, and not a readiness period later. It also holds back the containers behind a native sidecar.
func (s *subject) startupProbe() *corev1.Probe {
	return &corev1.Probe{ProbeHandler: s.ready(), PeriodSeconds: 1, TimeoutSeconds: 1, SuccessThreshold: 1, FailureThreshold: s.settings.ReadyTimeout}
}

func (s *subject) ready() corev1.ProbeHandler {
	return corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/ready", Port: portOf(s.settings.AdminPort), Scheme: corev1.URISchemeHTTP}}
}

// ending is how long the pod has beside the drain to end, in seconds, where it has as much: a short time is halved.
const ending = 5

// defaultGrace is how long a pod has to end that says nothing about it, in seconds.
const defaultGrace = 30

// drain is how many seconds the proxy waits, at most, for what is in flight. It has to fit into the time that the pod has to end, or the rest is cut off.
func (s *subject) drain() (int64, error) {
	wait, err := s.settings.drainWait()
	if err != nil {
		return 0, err
	}
	grace := int64(defaultGrace)
	if given := s.pod.Spec.TerminationGracePeriodSeconds; given != nil {
		grace = *given
	}
	if room := max(0, grace-min(ending, grace/2)); wait > room {
		s.warn("the proxy waits at most %d seconds for requests in flight when the pod ends, not %d, since spec.terminationGracePeriodSeconds is %d", room, wait, grace)
		wait = room
	}
	return wait, nil
}

// resources are those of a container of the mesh; the pod's annotations count where they are meant for it.
func (s *subject) resources(annotated bool) (corev1.ResourceRequirements, error) {
	out := corev1.ResourceRequirements{Requests: corev1.ResourceList{}, Limits: corev1.ResourceList{}}
	for _, r := range []struct {
		list             corev1.ResourceList
		name             corev1.ResourceName
		annotation, text string
	}{
		{out.Requests, corev1.ResourceCPU, annotationCPURequest, s.settings.CPURequest},
		{out.Requests, corev1.ResourceMemory, annotationMemoryRequest, s.settings.MemoryRequest},
		{out.Limits, corev1.ResourceCPU, annotationCPULimit, s.settings.CPULimit},
		{out.Limits, corev1.ResourceMemory, annotationMemoryLimit, s.settings.MemoryLimit},
	} {
		text := r.text
		if annotated {
			text = strings.TrimSpace(s.annotated(r.annotation, text))
		}
		if err := checkQuantity(text); err != nil {
			return out, s.wrong(r.annotation, "%v", err)
		}
		if text != "" {
			r.list[r.name] = resource.MustParse(text)
		}
	}
	for name, annotation := range map[corev1.ResourceName]string{corev1.ResourceCPU: annotationCPULimit, corev1.ResourceMemory: annotationMemoryLimit} {
		request, asked := out.Requests[name]
		limit, limited := out.Limits[name]
		if asked && limited && request.Cmp(limit) > 0 {
			return out, s.wrong(annotation, "the proxy's limit of %s, %s, is below its request, %s: raise the limit or lower the request", name, limit.String(), request.String())
		}
	}
	return out, nil
}
