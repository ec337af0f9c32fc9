// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// BackendGroupSpec is the desired state of a BackendGroup.
type BackendGroupSpec struct {
	// VirtualServices of the group. One without a namespace is looked up in that of the VirtualNode that uses the group.
	// +optional
	VirtualServices []VirtualServiceReference `json:"virtualservices,omitempty"`
	// MeshRef names the mesh of the group; filled in by admission.
	// +optional
	MeshRef *MeshReference `json:"meshRef,omitempty"`
}

// BackendGroupStatus is the observed state of a BackendGroup.
type BackendGroupStatus struct {
	// Conditions of the group.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the object that the status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}

// BackendGroup is a set of VirtualServices that VirtualNodes can take as backends together.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,appmesh}
type BackendGroup struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +optional
	Spec BackendGroupSpec `json:"spec,omitempty"`
	// Status is the observed state.
	// +optional
	Status BackendGroupStatus `json:"status,omitempty"`
}

// BackendGroupList is a list of BackendGroups.
// +kubebuilder:object:root=true
type BackendGroupList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []BackendGroup `json:"items"`
}
