// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// EgressFilterType says what happens to traffic for destinations outside the mesh.
// +kubebuilder:validation:Enum=ALLOW_ALL;DROP_ALL
type EgressFilterType string

// The types of an egress filter.
const (
	EgressFilterTypeAllowAll EgressFilterType = "ALLOW_ALL"
	EgressFilterTypeDropAll  EgressFilterType = "DROP_ALL"
)

// EgressFilter governs traffic for destinations outside the mesh.
type EgressFilter struct {
	// Type is ALLOW_ALL to forward such traffic, DROP_ALL to refuse it.
	Type EgressFilterType `json:"type"`
}

// IPPreference is the IP family that proxies use.
// +kubebuilder:validation:Enum=IPv6_ONLY;IPv4_ONLY
type IPPreference string

// The IP preferences of a mesh.
const (
	IPPreferenceIPv4Only IPPreference = "IPv4_ONLY"
	IPPreferenceIPv6Only IPPreference = "IPv6_ONLY"
)

// MeshServiceDiscovery holds what all service discovery of a mesh shares.
type MeshServiceDiscovery struct {
	// IPPreference is the IP family of endpoints and listeners.
	// +optional
	IPPreference *IPPreference `json:"ipPreference,omitempty"`
}

// MeshSpec is the desired state of a Mesh.
type MeshSpec struct {
	// AWSName is the name of the mesh in the App Mesh API; the object's own name when absent. It does not change.
	// +optional
	AWSName *string `json:"awsName,omitempty"`
	// NamespaceSelector selects the namespaces whose objects join the mesh. Absent selects none, {} selects all.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// EgressFilter governs traffic that leaves the mesh; DROP_ALL when absent.
	// +optional
	EgressFilter *EgressFilter `json:"egressFilter,omitempty"`
	// MeshOwner is the account id that owns a shared mesh; one's own when absent.
	// +optional
	MeshOwner *string `json:"meshOwner,omitempty"`
	// MeshServiceDiscovery holds what all service discovery of the mesh shares.
	// +optional
	MeshServiceDiscovery *MeshServiceDiscovery `json:"meshServiceDiscovery,omitempty"`
	// ServiceDiscoveryType is kept from v1beta1. Legacy: nothing reads it.
	// +optional
	ServiceDiscoveryType *string `json:"serviceDiscoveryType,omitempty"`
	// CloudMapNamespaceName is kept from v1beta1. Legacy: nothing reads it.
	// +optional
	CloudMapNamespaceName *string `json:"cloudMapNamespaceName,omitempty"`
}

// MeshStatus is the observed state of a Mesh.
type MeshStatus struct {
	// MeshARN is the ARN of the mesh.
	// +optional
	MeshARN *string `json:"meshARN,omitempty"`
	// Conditions of the mesh.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the object that the status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}

// Mesh is a network of services.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:scope=Cluster,categories={all,appmesh}
// +kubebuilder:printcolumn:name="ARN",type="string",JSONPath=".status.meshARN",description="The ARN of the mesh"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
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
