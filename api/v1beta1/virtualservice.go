// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// VirtualServiceSpec is the desired state of a VirtualService.
type VirtualServiceSpec struct {
	// MeshName is the name of the Mesh object to which the service belongs.
	// +optional
	MeshName string `json:"meshName,omitempty"`
	// VirtualRouter is the service's own router; one of the service's name when absent.
	// +optional
	VirtualRouter *v1beta2.LegacyVirtualRouter `json:"virtualRouter,omitempty"`
	// Routes of the service's router.
	// +optional
	Routes []v1beta2.LegacyRoute `json:"routes,omitempty"`
	// WrittenIn is carried for v1beta2: it says v1beta2 where the object was made in that version, and is absent otherwise.
	// +optional
	WrittenIn Origin `json:"writtenIn,omitempty"`
	// AWSName is carried for v1beta2: the App Mesh name where it is not what this version gives.
	// +optional
	AWSName *string `json:"awsName,omitempty"`
	// MeshRef is carried for v1beta2: the mesh where there is more to say of it than meshName does.
	// +optional
	MeshRef *v1beta2.MeshReference `json:"meshRef,omitempty"`
	// Provider is carried for v1beta2: what answers for the service, in place of routes.
	// +optional
	Provider *v1beta2.VirtualServiceProvider `json:"provider,omitempty"`
}

// VirtualServiceStatus is the observed state of a VirtualService.
type VirtualServiceStatus struct {
	// VirtualServiceArn is the ARN of the service.
	// +optional
	VirtualServiceArn *string `json:"virtualServiceArn,omitempty"`
	// VirtualRouterArn is the ARN of the service's router.
	// +optional
	VirtualRouterArn *string `json:"virtualRouterArn,omitempty"`
	// RouteArns are the ARNs of the routes.
	// +optional
	RouteArns []string `json:"routeArns,omitempty"`
	// Conditions of the service.
	// +optional
	Conditions []v1beta2.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is carried for v1beta2: the generation of the object that the status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}

// VirtualService is a name that clients call, and the routes to what answers there. Its object name is its App Mesh name.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,appmesh}
type VirtualService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec VirtualServiceSpec `json:"spec"`
	// Status is the observed state.
	// +optional
	Status VirtualServiceStatus `json:"status,omitempty"`
}

// VirtualServiceList is a list of VirtualServices.
// +kubebuilder:object:root=true
type VirtualServiceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []VirtualService `json:"items"`
}
