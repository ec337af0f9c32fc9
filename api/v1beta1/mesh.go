// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// MeshSpec is the desired state of a Mesh.
type MeshSpec struct {
	// EgressFilter governs traffic that leaves the mesh; DROP_ALL when absent.
	// +optional
	EgressFilter *v1beta2.EgressFilter `json:"egressFilter,omitempty"`
	// ServiceDiscoveryType is accepted and kept; nothing reads it.
	// +optional
	ServiceDiscoveryType *string `json:"serviceDiscoveryType,omitempty"`
	// CloudMapNamespaceName is accepted and kept; nothing reads it.
	// +optional
	CloudMapNamespaceName *string `json:"cloudMapNamespaceName,omitempty"`
	// AWSName is carried for v1beta2: the App Mesh name where it is not the object's own; "" where v1beta2 has none.
	// +optional
	AWSName *string `json:"awsName,omitempty"`
	// NamespaceSelector is carried for v1beta2: the namespaces whose objects join the mesh.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// MeshOwner is carried for v1beta2: the account that owns a shared mesh.
	// +optional
	MeshOwner *string `json:"meshOwner,omitempty"`
	// MeshServiceDiscovery is carried for v1beta2: what all service discovery of the mesh shares.
	// +optional
	MeshServiceDiscovery *v1beta2.MeshServiceDiscovery `json:"meshServiceDiscovery,omitempty"`
}

// MeshStatus is the observed state of a Mesh.
type MeshStatus struct {
	// MeshArn is the ARN of the mesh.
	// +optional
	MeshArn *string `json:"meshArn,omitempty"`
	// Conditions of the mesh, under the name that this version gives them.
	// +optional
	Conditions []v1beta2.Condition `json:"meshCondition,omitempty"`
	// ObservedGeneration is carried for v1beta2: the generation of the object that the status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}

// Mesh is a network of services. Its object name is its App Mesh name.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,categories={all,appmesh}
type Mesh struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +optional
	Spec MeshSpec `json:"spec,omitempty"`
	// Status is the observed state.
	// +optional
	Status MeshStatus `json:"status,omitempty"`
}

// MeshList is a list of Meshes.
// +kubebuilder:object:root=true
type MeshList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []Mesh `json:"items"`
}
