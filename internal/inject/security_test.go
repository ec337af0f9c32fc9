// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/internal/inject"
)

// nasty are values that somebody who may annotate a pod could try.
func nasty() []string {
	return []string{
		"", "enabled", "disabled", "true", "0", "-1", "root", "*", "native", "classic",
		"0=0", "APPMESH_RESOURCE_ARN=mesh/m/virtualNode/other, TULLE_XDS_CA=mine, TULLE_XDS_TOKEN_FILE=/x, APPMESH_XDS_ENDPOINT=evil:443, LD_PRELOAD=/x.so",
		`[{"APPMESH_XDS_ENDPOINT": "evil:443"}, {"TULLE_XDS_CA": "mine"}]`, "\"}],\"securityContext\":{\"privileged\":true},\"x\":[{\"y\":\"",
		"host:/host", "tulle-token:/mine", "a:/var/run/secrets/tulle", "a:/var/run/secrets/tulle/", "kube-root-ca:/a, host:/b", "../../x:/y", "x:/y:rw", "1000", "100m", "4Gi",
	}
}

// TestNoAnnotationRaisesPrivileges gives a pod every annotation with every value, one at a time: it is refused, or its containers may do no more than without.
func TestNoAnnotationRaisesPrivileges(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]inject.Settings{
		"native": testSettings(),
		"classic": func() inject.Settings {
			s := testSettings()
			s.SidecarMode, s.WaitUntilReady, s.SDS, s.XRay.Enabled = inject.SidecarClassic, true, true, true
			return s
		}(),
	} {
		w := newWebhook(t, settings, shop())
		passed := 0
		for _, annotation := range inject.Annotations() {
			for _, value := range nasty() {
				pod := &corev1.Pod{
					ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "shop", Labels: map[string]string{"app": "api"}, Annotations: map[string]string{annotation: value}},
					Spec: corev1.PodSpec{
						Containers: []corev1.Container{{Name: "app", Image: "i"}},
						Volumes:    []corev1.Volume{{Name: "host", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}},
					},
				}
				raw, err := json.Marshal(pod)
				if err != nil {
					t.Fatal(err)
				}
				answer := w.create(t, raw)
				if answer.refused != "" {
					continue
				}
				passed++
				var got corev1.Pod
				if err := json.Unmarshal(answer.pod, &got); err != nil {
					t.Fatal(err)
				}
				if fault := privileged(&got); fault != "" {
					t.Errorf("%s, %s=%q: %s", name, annotation, value, fault)
				}
			}
		}
		if passed == 0 {
			t.Errorf("%s: no pod passed, so nothing was looked at", name)
		}
	}
}

// privileged says what of a pod's mesh containers is more than they may have.
func privileged(pod *corev1.Pod) string {
	if pod.Spec.HostNetwork || pod.Spec.HostPID || pod.Spec.HostIPC {
		return "it shares something with its host"
	}
	for _, v := range pod.Spec.Volumes {
		if v.HostPath != nil {
			return "it has a path of its host: " + v.HostPath.Path
		}
		if v.Name == "tulle-token" && (v.Projected == nil || v.Projected.Sources[0].ServiceAccountToken.Audience != "tulle") {
			return "its token is not the mesh's"
		}
	}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		s := c.SecurityContext
		if c.Name == "app" {
			continue
		}
		switch {
		case s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation:
			return c.Name + " may gain privileges"
		case s.Privileged != nil && *s.Privileged:
			return c.Name + " is privileged"
		case s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}):
			return c.Name + " keeps capabilities"
		case c.Name == "proxyinit" && !slices.Equal(s.Capabilities.Add, []corev1.Capability{"NET_ADMIN", "NET_RAW"}):
			return fmt.Sprintf("proxyinit has capabilities %v", s.Capabilities.Add)
		case c.Name != "proxyinit" && (len(s.Capabilities.Add) > 0 || *s.RunAsUser != 1337 || !*s.RunAsNonRoot):
			return c.Name + " is somebody else, or may do more"
		}
		for _, env := range c.Env {
			fixed := map[string]string{
				"APPMESH_RESOURCE_ARN": "mesh/m/virtualNode/api_shop", "APPMESH_XDS_ENDPOINT": "appmesh-controller-xds.appmesh-system.svc:443",
				"TULLE_XDS_TOKEN_FILE": "/var/run/secrets/tulle/token", "APPMESH_IGNORE_UID": "1337",
			}
			if want, ok := fixed[env.Name]; ok && env.Value != want || env.Name == "TULLE_XDS_CA" && env.Value == "mine" {
				return c.Name + " has " + env.Name + "=" + env.Value
			}
		}
		paths := map[string]bool{}
		for _, m := range c.VolumeMounts {
			path := strings.TrimSuffix(m.MountPath, "/")
			if paths[path] {
				return c.Name + " has two mounts at " + path
			}
			paths[path] = true
			if !m.ReadOnly && m.Name != "tulle-tmp" {
				return c.Name + " may write to " + m.Name
			}
		}
	}
	return ""
}

// shop is a namespace with a node.
func shop() []json.RawMessage {
	return []json.RawMessage{
		json.RawMessage(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop","labels":{"appmesh.k8s.aws/sidecarInjectorWebhook":"enabled"}}}`),
		json.RawMessage(`{"apiVersion":"appmesh.k8s.aws/v1beta2","kind":"Mesh","metadata":{"name":"m"},"spec":{}}`),
		node(),
	}
}

func node() json.RawMessage {
	return json.RawMessage(`{"apiVersion":"appmesh.k8s.aws/v1beta2","kind":"VirtualNode","metadata":{"name":"api","namespace":"shop"},
		"spec":{"meshRef":{"name":"m"},"podSelector":{"matchLabels":{"app":"api"}},"listeners":[{"portMapping":{"port":8080,"protocol":"http"}}]}}`)
}

func TestAllAnnotationsOfTheOriginalAreKnown(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, name := range inject.Annotations() {
		known[name] = true
	}
	for name := range maps.Keys(known) {
		if !strings.HasPrefix(name, "appmesh.k8s.aws/") {
			t.Errorf("%s is not the mesh's", name)
		}
	}
	for _, name := range []string{
		"sidecarInjectorWebhook", "cpuRequest", "memoryRequest", "cpuLimit", "memoryLimit", "appmeshCNI", "ports", "egressIgnoredIPs", "egressIgnoredPorts", "ipv6",
		"ignoredUID", "proxyEgressPort", "proxyIngressPort", "ignoredGID", "preview", "secretMounts", "volumeMounts", "sidecarEnv", "sidecarEnvJson",
		"virtualGatewaySkipImageOverride", "sds", "xrayAgentConfigMount", "mesh", "virtualNode",
	} {
		if !known["appmesh.k8s.aws/"+name] {
			t.Errorf("%s is not known", name)
		}
	}
}
