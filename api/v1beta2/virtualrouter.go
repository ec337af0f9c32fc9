// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VirtualRouterListener is a port on which a router takes traffic.
type VirtualRouterListener struct {
	// PortMapping is the port and the protocol.
	PortMapping PortMapping `json:"portMapping"`
}

// VirtualRouterSpec is the desired state of a VirtualRouter.
type VirtualRouterSpec struct {
	// AWSName is the name of the router in the App Mesh API; <name>_<namespace> when absent. It does not change.
	// +optional
	AWSName *string `json:"awsName,omitempty"`
	// Listeners are the ports on which the router takes traffic.
	// +kubebuilder:validation:MinItems=1
	// +optional
	Listeners []VirtualRouterListener `json:"listeners,omitempty"`
	// Routes of the router.
	// +optional
	Routes []Route `json:"routes,omitempty"`
	// MeshRef names the mesh of the router; filled in by admission.
	// +optional
	MeshRef *MeshReference `json:"meshRef,omitempty"`
}

// VirtualRouterStatus is the observed state of a VirtualRouter.
type VirtualRouterStatus struct {
	// VirtualRouterARN is the ARN of the router.
	// +optional
	VirtualRouterARN *string `json:"virtualRouterARN,omitempty"`
	// RouteARNs maps the names of the routes to their ARNs.
	// +optional
	RouteARNs map[string]string `json:"routeARNs,omitempty"`
	// Conditions of the router.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the object that the status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}

// VirtualRouter spreads the traffic of services over nodes.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,appmesh}
// +kubebuilder:printcolumn:name="ARN",type="string",JSONPath=".status.virtualRouterARN",description="The ARN of the virtual router"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type VirtualRouter struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +optional
	Spec VirtualRouterSpec `json:"spec,omitempty"`
	// Status is the observed state.
	// +optional
	Status VirtualRouterStatus `json:"status,omitempty"`
}

// VirtualRouterList is a list of VirtualRouters.
// +kubebuilder:object:root=true
type VirtualRouterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []VirtualRouter `json:"items"`
}
