// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VirtualNodeServiceProvider lets one node serve all traffic; set the reference or the ARN.
type VirtualNodeServiceProvider struct {
	// VirtualNodeRef points to a VirtualNode object of the same mesh.
	// +optional
	VirtualNodeRef *VirtualNodeReference `json:"virtualNodeRef,omitempty"`
	// VirtualNodeARN is the App Mesh ARN of the node; it wins over the reference.
	// +optional
	VirtualNodeARN *string `json:"virtualNodeARN,omitempty"`
}

// VirtualRouterServiceProvider lets a router spread the traffic; set the reference or the ARN.
type VirtualRouterServiceProvider struct {
	// VirtualRouterRef points to a VirtualRouter object of the same mesh.
	// +optional
	VirtualRouterRef *VirtualRouterReference `json:"virtualRouterRef,omitempty"`
	// VirtualRouterARN is the App Mesh ARN of the router; it wins over the reference.
	// +optional
	VirtualRouterARN *string `json:"virtualRouterARN,omitempty"`
}

// VirtualServiceProvider is what answers for a service; set exactly one member.
type VirtualServiceProvider struct {
	// VirtualNode serves all traffic.
	// +optional
	VirtualNode *VirtualNodeServiceProvider `json:"virtualNode,omitempty"`
	// VirtualRouter spreads the traffic over nodes.
	// +optional
	VirtualRouter *VirtualRouterServiceProvider `json:"virtualRouter,omitempty"`
}

// VirtualServiceSpec is the desired state of a VirtualService.
// +kubebuilder:validation:XValidation:rule="!has(self.provider) || !(has(self.routes) || has(self.virtualRouter))",message="provider cannot stand beside routes or virtualRouter, which are v1beta1's own way to say the same"
type VirtualServiceSpec struct {
	// AWSName is the name of the service in the App Mesh API, the host name that clients use; <name>.<namespace> when
	// absent. It does not change.
	// +optional
	AWSName *string `json:"awsName,omitempty"`
	// Provider answers for the service; without one the service has no endpoints.
	// +optional
	Provider *VirtualServiceProvider `json:"provider,omitempty"`
	// MeshRef names the mesh of the service; filled in by admission.
	// +optional
	MeshRef *MeshReference `json:"meshRef,omitempty"`
	// MeshName is kept from v1beta1. Legacy: meshRef takes its place.
	// +optional
	MeshName *string `json:"meshName,omitempty"`
	// VirtualRouter is kept from v1beta1. Legacy: the service's own router.
	// +optional
	VirtualRouter *LegacyVirtualRouter `json:"virtualRouter,omitempty"`
	// Routes is kept from v1beta1. Legacy: the routes of the service's own router.
	// +optional
	Routes []LegacyRoute `json:"routes,omitempty"`
}

// VirtualServiceStatus is the observed state of a VirtualService.
type VirtualServiceStatus struct {
	// VirtualServiceARN is the ARN of the service.
	// +optional
	VirtualServiceARN *string `json:"virtualServiceARN,omitempty"`
	// Conditions of the service.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the object that the status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// VirtualRouterArn is kept from v1beta1. Legacy: the ARN of the service's own router.
	// +optional
	VirtualRouterArn *string `json:"virtualRouterArn,omitempty"`
	// RouteArns is kept from v1beta1. Legacy: the ARNs of the routes of the service's own router.
	// +optional
	RouteArns []string `json:"routeArns,omitempty"`
}

// VirtualService is a name that clients call, and what answers there.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:categories={all,appmesh}
// +kubebuilder:printcolumn:name="ARN",type="string",JSONPath=".status.virtualServiceARN",description="The ARN of the virtual service"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type VirtualService struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +optional
	Spec VirtualServiceSpec `json:"spec,omitempty"`
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
