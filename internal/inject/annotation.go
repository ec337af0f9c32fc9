// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"encoding/json"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/tulle-mesh/tulle/internal/admission/review"
)

// annotationPrefix begins the names of all annotations of the mesh.
const annotationPrefix = "appmesh.k8s.aws/"

// The annotations of pods. The first is also the label of namespaces.
const (
	annotationInject        = annotationPrefix + "sidecarInjectorWebhook"
	annotationSidecarMode   = annotationPrefix + "sidecarMode"
	annotationCPURequest    = annotationPrefix + "cpuRequest"
	annotationMemoryRequest = annotationPrefix + "memoryRequest"
	annotationCPULimit      = annotationPrefix + "cpuLimit"
	annotationMemoryLimit   = annotationPrefix + "memoryLimit"
	annotationCNI           = annotationPrefix + "appmeshCNI"
	annotationPorts         = annotationPrefix + "ports"
	annotationIgnoredIPs    = annotationPrefix + "egressIgnoredIPs"
	annotationIgnoredPorts  = annotationPrefix + "egressIgnoredPorts"
	annotationIPv6          = annotationPrefix + "ipv6"
	annotationIgnoredUID    = annotationPrefix + "ignoredUID"
	annotationEgressPort    = annotationPrefix + "proxyEgressPort"
	annotationIngressPort   = annotationPrefix + "proxyIngressPort"
	annotationPreview       = annotationPrefix + "preview"
	annotationSecretMounts  = annotationPrefix + "secretMounts"
	annotationVolumeMounts  = annotationPrefix + "volumeMounts"
	annotationEnv           = annotationPrefix + "sidecarEnv"
	annotationEnvJSON       = annotationPrefix + "sidecarEnvJson"
	annotationKeepImage     = annotationPrefix + "virtualGatewaySkipImageOverride"
	annotationSDS           = annotationPrefix + "sds"
	annotationXRayConfig    = annotationPrefix + "xrayAgentConfigMount"
	annotationMesh          = annotationPrefix + "mesh"
	annotationVirtualNode   = annotationPrefix + "virtualNode"
	annotationIgnoredGID    = annotationPrefix + "ignoredGID"
)

// labelFargate is the label of pods on EKS Fargate, where the CNI plugin was the only way.
const labelFargate = "eks.amazonaws.com/fargate-profile"

// annotations are all that are known; true for those that only mean something to the pods of nodes.
func annotations() map[string]bool {
	return map[string]bool{
		annotationInject: false, annotationSidecarMode: true, annotationCPURequest: true, annotationMemoryRequest: true, annotationCPULimit: true,
		annotationMemoryLimit: true, annotationCNI: true, annotationPorts: true, annotationIgnoredIPs: true, annotationIgnoredPorts: true, annotationIPv6: true,
		annotationIgnoredUID: false, annotationEgressPort: false, annotationIngressPort: false, annotationPreview: false, annotationSecretMounts: true,
		annotationVolumeMounts: true, annotationEnv: true, annotationEnvJSON: true, annotationKeepImage: false, annotationSDS: false,
		annotationXRayConfig: false, annotationMesh: false, annotationVirtualNode: false, annotationIgnoredGID: false,
	}
}

// Annotations are the names of all annotations that the webhook knows, sorted.
func Annotations() []string { return slices.Sorted(maps.Keys(annotations())) }

// known warns of annotations that nothing reads, which are mostly slips of the pen.
func (s *subject) known() {
	all := annotations()
	for _, name := range slices.Sorted(maps.Keys(s.pod.Annotations)) {
		if !strings.HasPrefix(name, annotationPrefix) {
			continue
		}
		nodesOnly, known := all[name]
		switch {
		case !known:
			near := ""
			for candidate := range all {
				if strings.EqualFold(candidate, name) {
					near = "; did you mean " + candidate + "?"
				}
			}
			s.warn("the annotation %s is not known and has no effect%s", name, near)
		case nodesOnly && s.isGateway():
			s.warn("the annotation %s has no effect on the pod of a gateway: write it into the container %q", name, containerEnvoy)
		case name == annotationPreview:
			s.warn("the annotation %s has no effect on Tulle's proxy: nothing is asked of AWS", name)
		case name == annotationInject && s.annotatedMode() == modeUnspecified:
			s.warn("the annotation %s is %q, which is neither enabled nor disabled; the namespace's label counts", name, s.pod.Annotations[name])
		}
	}
}

// annotated is a pod's annotation, or what stands in for one that is absent.
func (s *subject) annotated(name, otherwise string) string {
	if text, ok := s.pod.Annotations[name]; ok {
		return text
	}
	return otherwise
}

// wrong refuses the pod for what is in an annotation.
func (s *subject) wrong(name, format string, args ...any) error {
	return review.Refusef("%s: annotation %s: "+format, append([]any{s, name}, args...)...)
}

// variableName is a name that every program can read.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)

// ownVariables are those that the pod gives the proxy: from sidecarEnv, and over those from sidecarEnvJson.
func (s *subject) ownVariables() (map[string]string, error) {
	out := map[string]string{}
	if text := strings.TrimSpace(s.pod.Annotations[annotationEnv]); text != "" {
		for item := range strings.SplitSeq(text, ",") {
			parts := strings.Split(strings.TrimSpace(item), "=")
			if len(parts) != 2 {
				return nil, s.wrong(annotationEnv, "%q: want NAME=VALUE, NAME=VALUE; a value with a comma or an equals sign goes into %s", item, annotationEnvJSON)
			}
			out[strings.TrimSpace(parts[0])] = strings.TrimSpace(parts[1])
		}
	}
	if text := strings.TrimSpace(s.pod.Annotations[annotationEnvJSON]); text != "" {
		var list []map[string]string
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return nil, s.wrong(annotationEnvJSON, `%q: want a JSON list of objects of strings such as [{"NAME": "VALUE"}]: %v`, text, err)
		}
		for _, entry := range list {
			maps.Copy(out, entry)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(out)) {
		if !variableName.MatchString(name) {
			return nil, s.wrong(annotationEnv+" or "+annotationEnvJSON, "%q cannot name a variable: want letters, digits and underscores", name)
		}
	}
	return out, nil
}

// mount is one entry of a list of mounts.
type mount struct{ volume, path string }

// mounts reads an annotation of the form name:path, name:path.
func (s *subject) mounts(annotation string) ([]mount, error) {
	var out []mount
	for item := range strings.SplitSeq(s.pod.Annotations[annotation], ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		name, where, ok := strings.Cut(item, ":")
		m := mount{volume: strings.TrimSpace(name), path: strings.TrimSpace(where)}
		if !ok || m.volume == "" || !strings.HasPrefix(m.path, "/") || strings.Contains(m.path, ":") {
			return nil, s.wrong(annotation, "%q: want NAME:/PATH, NAME:/PATH", item)
		}
		m.path = path.Clean(m.path)
		out = append(out, m)
	}
	return out, nil
}
