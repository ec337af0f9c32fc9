// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta1"
	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// kind is how objects of one kind are read.
type kind struct {
	fresh func() metav1.Object
	// clusterScoped kinds have no namespace.
	clusterScoped bool
	// metadataOnly kinds are read no further than their metadata.
	metadataOnly bool
}

// kinds are those that mean something to the mesh, by API version and kind.
type kinds map[string]map[string]kind

// groupMesh is the group of the custom resources; a kind of it that is unknown is a mistake, not something to skip.
const groupMesh = v1beta2.Group + "/"

func newKinds() kinds {
	first := map[string]kind{
		"Mesh":           {fresh: func() metav1.Object { return &v1beta1.Mesh{} }, clusterScoped: true},
		"VirtualNode":    {fresh: func() metav1.Object { return &v1beta1.VirtualNode{} }},
		"VirtualService": {fresh: func() metav1.Object { return &v1beta1.VirtualService{} }},
	}
	return kinds{
		v1beta2.GroupVersion().String(): {
			"Mesh":           {fresh: func() metav1.Object { return &v1beta2.Mesh{} }, clusterScoped: true},
			"VirtualNode":    {fresh: func() metav1.Object { return &v1beta2.VirtualNode{} }},
			"VirtualService": {fresh: func() metav1.Object { return &v1beta2.VirtualService{} }},
			"VirtualRouter":  {fresh: func() metav1.Object { return &v1beta2.VirtualRouter{} }},
			"VirtualGateway": {fresh: func() metav1.Object { return &v1beta2.VirtualGateway{} }},
			"GatewayRoute":   {fresh: func() metav1.Object { return &v1beta2.GatewayRoute{} }},
			"BackendGroup":   {fresh: func() metav1.Object { return &v1beta2.BackendGroup{} }},
		},
		v1beta1.GroupVersion().String(): first,
		// v1alpha1 was served beside v1beta1 with the same schema.
		groupMesh + "v1alpha1": first,
		"v1": {
			"Namespace": {fresh: func() metav1.Object { return &corev1.Namespace{} }, clusterScoped: true},
			"Service":   {fresh: func() metav1.Object { return &corev1.Service{} }},
			"Pod":       {fresh: func() metav1.Object { return &corev1.Pod{} }},
		},
		discoveryv1.SchemeGroupVersion.String(): {
			"EndpointSlice": {fresh: func() metav1.Object { return &discoveryv1.EndpointSlice{} }},
		},
	}
}

// find looks a kind up. Deployments of any group version count.
func (k kinds) find(apiVersion, name string) (kind, bool) {
	if name == "Deployment" && (strings.HasPrefix(apiVersion, "apps/") || strings.HasPrefix(apiVersion, "extensions/")) {
		return kind{fresh: func() metav1.Object { return &metav1.PartialObjectMetadata{} }, metadataOnly: true}, true
	}
	found, ok := k[apiVersion][name]
	return found, ok
}
