// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// PlaceholderAnnotation on a Mesh, "enabled" or "disabled", says whether its virtual services get placeholder Services, whatever the controller's flag says.
//
// A placeholder is a Service without a selector that gives a virtual service's name an address, so that clients which look the name up get an answer; the proxy
// then sends the connection where the mesh says.
const PlaceholderAnnotation = v1beta2.Group + "/placeholder-services"

// PlaceholderLabel marks placeholders, with the name of the VirtualService as its value, shortened where it is too long. A Service without it is never touched.
const PlaceholderLabel = v1beta2.Group + "/placeholder"

// placeholderManager is who the API server notes as the writer of placeholders. Another beside it means that a placeholder has become somebody's own.
const placeholderManager = "appmesh-controller-placeholder"

// PlaceholderRules are what placeholder Services need of the API beyond Rules; a role has them only where placeholders are wanted.
func PlaceholderRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"services"}, Verbs: []string{"create", "patch", "delete"}}}
}

// wantsPlaceholders says what a Mesh and the flag come to. An annotation that is neither of its two values is as good as none.
func wantsPlaceholders(m *v1beta2.Mesh, flag bool) (wanted, understood bool) {
	switch value, set := m.Annotations[PlaceholderAnnotation]; {
	case !set:
		return flag, true
	case strings.EqualFold(value, "enabled"):
		return true, true
	case strings.EqualFold(value, "disabled"):
		return false, true
	default:
		return flag, false
	}
}

// placeholderName says which Service in the virtual service's own namespace its name stands for: name.namespace, with .svc and the cluster's domain or without.
// Any other name gets no placeholder.
func placeholderName(host, namespace, domain string) (string, bool) {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	rest, ok := strings.CutSuffix(host, ".svc."+strings.ToLower(domain))
	if !ok {
		rest = strings.TrimSuffix(host, ".svc")
	}
	name, in, _ := strings.Cut(rest, ".")
	return name, in == namespace && len(validation.IsDNS1035Label(name)) == 0
}

// placeholderPorts are the ports on which a virtual service is called: its router's, else its node's. There are none while the provider is not known.
func placeholderPorts(r mesh.Reader, service *mesh.VirtualService) []corev1.ServicePort {
	var mappings []mesh.PortMapping
	switch p := service.Spec.Provider; {
	case p == nil:
	case p.VirtualRouter != nil:
		if router, ok := r.Get(mesh.RouterKey(service.MeshName, p.VirtualRouter.VirtualRouterName)).(*mesh.VirtualRouter); ok {
			for _, l := range router.Spec.Listeners {
				mappings = append(mappings, l.PortMapping)
			}
		}
	case p.VirtualNode != nil:
		if node, ok := r.Get(mesh.NodeKey(service.MeshName, p.VirtualNode.VirtualNodeName)).(*mesh.VirtualNode); ok {
			for i := range node.Spec.Listeners {
				mappings = append(mappings, node.Spec.Listeners[i].PortMapping)
			}
		}
	}
	var ports []corev1.ServicePort
	for _, m := range mappings {
		if m.Port < 1 || m.Port > 65535 {
			continue // a finding says so
		}
		ports = append(ports, corev1.ServicePort{Name: fmt.Sprintf("%s-%d", m.Protocol, m.Port), Protocol: corev1.ProtocolTCP, Port: m.Port})
	}
	slices.SortFunc(ports, func(a, b corev1.ServicePort) int {
		return cmp.Or(cmp.Compare(a.Port, b.Port), cmp.Compare(a.Name, b.Name))
	})
	return slices.CompactFunc(ports, func(a, b corev1.ServicePort) bool { return a.Port == b.Port })
}

// placeholder is the Service of a virtual service. It goes with the VirtualService that owns it.
func placeholder(name string, service *mesh.VirtualService, ports []corev1.ServicePort) *corev1.Service {
	source := service.Source
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: source.Namespace, Name: name,
			Labels: map[string]string{PlaceholderLabel: labelValue(source.Name), managedByLabel: component},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1beta2.GroupVersion().String(), Kind: string(mesh.KindVirtualService), Name: source.Name, UID: types.UID(service.UID),
			}},
		},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeClusterIP, Ports: ports},
	}
}

const managedByLabel = "app.kubernetes.io/managed-by"

// labelValue cuts a name to what a label's value may be.
func labelValue(name string) string {
	return strings.TrimRight(name[:min(len(name), validation.LabelValueMaxLength)], "-.")
}

// released returns a Service without what made it a placeholder.
func released(s *corev1.Service) *corev1.Service {
	kept := s.DeepCopy()
	delete(kept.Labels, PlaceholderLabel)
	if kept.Labels[managedByLabel] == component {
		delete(kept.Labels, managedByLabel)
	}
	kept.OwnerReferences = slices.DeleteFunc(kept.OwnerReferences, func(o metav1.OwnerReference) bool {
		return strings.HasPrefix(o.APIVersion, v1beta2.Group+"/") && o.Kind == string(mesh.KindVirtualService)
	})
	return kept
}

// claimed says whether a placeholder has become somebody's own: it selects pods, or another than this controller has written to it. What writes status is
// not meant.
func claimed(s *corev1.Service) bool {
	return len(s.Spec.Selector) > 0 || slices.ContainsFunc(s.ManagedFields, func(f metav1.ManagedFieldsEntry) bool {
		return f.Manager != placeholderManager && f.Subresource == ""
	})
}

// samePorts compares what placeholders say of ports, and leaves out what the API server adds.
func samePorts(a, b []corev1.ServicePort) bool {
	return slices.EqualFunc(a, b, func(x, y corev1.ServicePort) bool {
		return x.Name == y.Name && x.Port == y.Port && x.Protocol == y.Protocol
	})
}
