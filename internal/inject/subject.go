// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// The names of containers.
const (
	containerEnvoy = "envoy"
	containerInit  = "proxyinit"
	containerXRay  = "xray-daemon"
)

// subject is the pod at hand, and what is known about it.
type subject struct {
	// pod is for reading; it stays as it came. What changes is doc.
	pod *corev1.Pod
	doc *document

	settings      *Settings
	member        decode.Member
	serverVersion string
	ca            string
	// ports are those of the node's listeners.
	ports []int64
	// usesSDS says that the node or gateway has certificates from a secret discovery service.
	usesSDS bool

	// volumes are those of the pod, with what was added.
	volumes  []corev1.Volume
	warnings []string
}

func read(raw []byte, namespace string) (*subject, error) {
	doc, err := parse(raw)
	if err != nil {
		return nil, err
	}
	pod := &corev1.Pod{}
	if err := json.Unmarshal(raw, pod); err != nil {
		return nil, err
	}
	pod.Namespace = namespace
	return &subject{pod: pod, doc: doc, volumes: slices.Clone(pod.Spec.Volumes)}, nil
}

// String names the pod; one that is still to get its name has a star in its place.
func (s *subject) String() string {
	name := s.pod.Name
	if name == "" {
		name = s.pod.GenerateName + "*"
	}
	return "pod " + s.pod.Namespace + "/" + name
}

// warn tells whoever creates the pod.
func (s *subject) warn(format string, args ...any) {
	s.warnings = append(s.warnings, fmt.Sprintf("%s: %s", s, fmt.Sprintf(format, args...)))
}

// notices are the warnings, each once.
func (s *subject) notices() []string {
	slices.Sort(s.warnings)
	return slices.Compact(s.warnings)
}

func index(containers []corev1.Container, name string) int {
	return slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
}

// has says whether the pod came with a container of a name, of either kind.
func (s *subject) has(name string) bool {
	return index(s.pod.Spec.Containers, name) >= 0 || index(s.pod.Spec.InitContainers, name) >= 0
}

// done says that the pod has been here already, or at another injector of the mesh.
func (s *subject) done() bool {
	for _, list := range [][]corev1.Container{s.pod.Spec.Containers, s.pod.Spec.InitContainers} {
		i := index(list, containerEnvoy)
		if i >= 0 && slices.ContainsFunc(list[i].Env, func(e corev1.EnvVar) bool { return e.Name == envTokenFile }) {
			return true
		}
	}
	return false
}

// isGateway says that the pod's proxy stands for a gateway.
func (s *subject) isGateway() bool { return s.member.Key.Kind == mesh.KindVirtualGateway }

// resource is what the proxy calls itself: the last part of its ARN.
func (s *subject) resource() string {
	of := s.member.Key.Mesh
	if s.member.MeshOwner != "" && s.member.MeshOwner != s.settings.AccountID {
		of += "@" + s.member.MeshOwner
	}
	kind := "virtualNode"
	if s.isGateway() {
		kind = "virtualGateway"
	}
	return "mesh/" + of + "/" + kind + "/" + s.member.Key.Name
}

// mutate changes the pod step by step.
func (s *subject) mutate() error {
	s.known()
	s.conflicts()
	steps := []func() error{s.redirect, s.proxy, s.xray, s.fsGroup, s.pullSecret}
	if s.isGateway() {
		steps = []func() error{s.gateway, s.xray}
	} else if s.has(containerEnvoy) {
		s.warn("it has a container %q of its own, which is left as it is, and so is the rest of the pod", containerEnvoy)
		return nil
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	return nil
}
