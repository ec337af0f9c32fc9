// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// AWSCloudMapInstanceAttribute is an attribute that an instance must carry.
type AWSCloudMapInstanceAttribute struct {
	// Key of the attribute; printable ASCII without blanks.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	Key string `json:"key"`
	// Value of the attribute.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	Value string `json:"value"`
}

// AWSCloudMapServiceDiscovery finds endpoints among the pods registered under a service name.
type AWSCloudMapServiceDiscovery struct {
	// NamespaceName of the service.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	NamespaceName string `json:"namespaceName"`
	// ServiceName under which the pods are registered.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1024
	ServiceName string `json:"serviceName"`
	// Attributes that narrow the choice; an endpoint must carry them all.
	// +optional
	Attributes []AWSCloudMapInstanceAttribute `json:"attributes,omitempty"`
}

// DNSResponseType says how the addresses of a DNS answer are used.
// +kubebuilder:validation:Enum=ENDPOINTS;LOADBALANCER
type DNSResponseType string

// The response types of DNS discovery.
const (
	DNSResponseTypeEndpoints    DNSResponseType = "ENDPOINTS"
	DNSResponseTypeLoadBalancer DNSResponseType = "LOADBALANCER"
)

// DNSServiceDiscovery finds endpoints by a host name.
type DNSServiceDiscovery struct {
	// Hostname to resolve.
	Hostname string `json:"hostname"`
	// ResponseType is ENDPOINTS where each address is an endpoint, LOADBALANCER where any one address will do.
	// +optional
	ResponseType *DNSResponseType `json:"responseType,omitempty"`
}

// ServiceDiscovery says how callers find a node's endpoints; set exactly one member.
type ServiceDiscovery struct {
	// AWSCloudMap finds them by service name and attributes. It does not change once set.
	// +optional
	AWSCloudMap *AWSCloudMapServiceDiscovery `json:"awsCloudMap,omitempty"`
	// DNS finds them by host name.
	// +optional
	DNS *DNSServiceDiscovery `json:"dns,omitempty"`
}

// VirtualServiceBackend is a service that a node calls; set the reference or the ARN.
type VirtualServiceBackend struct {
	// VirtualServiceRef points to a VirtualService object of the same mesh.
	// +optional
	VirtualServiceRef *VirtualServiceReference `json:"virtualServiceRef,omitempty"`
	// VirtualServiceARN is the App Mesh ARN of the service; it wins over the reference.
	// +optional
	VirtualServiceARN *string `json:"virtualServiceARN,omitempty"`
	// VirtualServiceName is kept from v1beta1. Legacy: the App Mesh name of the service.
	// +optional
	VirtualServiceName *string `json:"virtualServiceName,omitempty"`
	// ClientPolicy for this backend, in place of the node's default.
	// +optional
	ClientPolicy *ClientPolicy `json:"clientPolicy,omitempty"`
}

// Backend is one entry of a node's list of backends.
type Backend struct {
	// VirtualService that the node calls.
	VirtualService VirtualServiceBackend `json:"virtualService"`
}

// BackendDefaults holds for backends that say nothing themselves.
type BackendDefaults struct {
	// ClientPolicy for connections to backends.
	// +optional
	ClientPolicy *ClientPolicy `json:"clientPolicy,omitempty"`
}

// VirtualNodeSpec is the desired state of a VirtualNode.
type VirtualNodeSpec struct {
	// AWSName is the name of the node in the App Mesh API; <name>_<namespace> when absent. It does not change.
	// +optional
	AWSName *string `json:"awsName,omitempty"`
	// PodSelector selects the pods of the node in its namespace. Absent selects none, {} selects all.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// Listeners are the ports on which the node takes traffic; none for a node that only calls.
	// +kubebuilder:validation:MinItems=0
	// +optional
	Listeners []Listener `json:"listeners,omitempty"`
	// ServiceDiscovery says how callers find the node's endpoints. A node with listeners and a podSelector may leave it
	// out: its endpoints are then its ready pods.
	// +optional
	ServiceDiscovery *ServiceDiscovery `json:"serviceDiscovery,omitempty"`
	// Backends are the services that the node calls.
	// +optional
	Backends []Backend `json:"backends,omitempty"`
	// BackendGroups add the services of whole groups to the backends.
	// +optional
	BackendGroups []BackendGroupReference `json:"backendGroups,omitempty"`
	// BackendDefaults hold for backends that say nothing themselves.
	// +optional
	BackendDefaults *BackendDefaults `json:"backendDefaults,omitempty"`
	// Logging of the node's proxies.
	// +optional
	Logging *Logging `json:"logging,omitempty"`
	// MeshRef names the mesh of the node; filled in by admission.
	// +optional
	MeshRef *MeshReference `json:"meshRef,omitempty"`
	// MeshName is kept from v1beta1. Legacy: meshRef takes its place. A node that carries it takes its pods from the
	// workload of its own name where it has no podSelector.
	// +optional
	MeshName *string `json:"meshName,omitempty"`
}

// VirtualNodeStatus is the observed state of a VirtualNode.
type VirtualNodeStatus struct {
	// VirtualNodeARN is the ARN of the node.
	// +optional
	VirtualNodeARN *string `json:"virtualNodeARN,omitempty"`
	// Conditions of the node.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the object that the status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
	// MeshArn is kept from v1beta1. Legacy: the ARN of the node's mesh.
	// +optional
	MeshArn *string `json:"meshArn,omitempty"`
	// CloudMapService is kept from v1beta1. Legacy: nothing writes it.
	// +optional
	CloudMapService *LegacyCloudMapServiceStatus `json:"cloudmapService,omitempty"`
}

// VirtualNode stands for a workload: its pods, the ports they serve and the services they call.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:storageversion
// +kubebuilder:resource:categories={all,appmesh}
// +kubebuilder:printcolumn:name="ARN",type="string",JSONPath=".status.virtualNodeARN",description="The ARN of the virtual node"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type VirtualNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +optional
	Spec VirtualNodeSpec `json:"spec,omitempty"`
	// Status is the observed state.
	// +optional
	Status VirtualNodeStatus `json:"status,omitempty"`
}

// VirtualNodeList is a list of VirtualNodes.
// +kubebuilder:object:root=true
type VirtualNodeList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []VirtualNode `json:"items"`
}
