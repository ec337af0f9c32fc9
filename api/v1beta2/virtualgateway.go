// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// VirtualGatewayPortProtocol is the protocol that a gateway's listener speaks.
// +kubebuilder:validation:Enum=grpc;http;http2
type VirtualGatewayPortProtocol string

// VirtualGatewayPortMapping is the port and the protocol of a gateway's listener.
type VirtualGatewayPortMapping struct {
	// Port on which the gateway listens, 1 to 65535.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int64 `json:"port"`
	// Protocol that is spoken on the port.
	Protocol VirtualGatewayPortProtocol `json:"protocol"`
}

// VirtualGatewayHealthCheckPolicy says how a gateway's listener is probed.
type VirtualGatewayHealthCheckPolicy struct {
	// HealthyThreshold is the number of successes in a row that make the gateway healthy, 2 to 10.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=10
	// +optional
	HealthyThreshold *int64 `json:"healthyThreshold,omitempty"`
	// IntervalMillis is the time between two probes in milliseconds, 5000 to 300000.
	// +kubebuilder:validation:Minimum=5000
	// +kubebuilder:validation:Maximum=300000
	IntervalMillis int64 `json:"intervalMillis"`
	// Path of an http or http2 probe.
	// +optional
	Path *string `json:"path,omitempty"`
	// Port of the probe; the listener's when absent.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port *int64 `json:"port,omitempty"`
	// Protocol of the probe.
	Protocol VirtualGatewayPortProtocol `json:"protocol"`
	// TimeoutMillis is how long a probe may take in milliseconds, 2000 to 60000.
	// +kubebuilder:validation:Minimum=2000
	// +kubebuilder:validation:Maximum=60000
	TimeoutMillis int64 `json:"timeoutMillis"`
	// UnhealthyThreshold is the number of failures in a row that make the gateway unhealthy, 2 to 10.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=10
	UnhealthyThreshold int64 `json:"unhealthyThreshold"`
}

// VirtualGatewayListenerTLS ends TLS at a gateway's listener.
type VirtualGatewayListenerTLS struct {
	// Certificate that the listener shows.
	Certificate ListenerTLSCertificate `json:"certificate"`
	// Mode is STRICT for TLS alone, PERMISSIVE for TLS and plaintext, DISABLED for plaintext.
	Mode ListenerTLSMode `json:"mode"`
	// Validation of client certificates, for mutual TLS. A listener cannot trust an ACM authority.
	// +optional
	Validation *TLSValidationContext `json:"validation,omitempty"`
}

// VirtualGatewayListener is a port on which a gateway takes traffic.
type VirtualGatewayListener struct {
	// PortMapping is the port and the protocol.
	PortMapping VirtualGatewayPortMapping `json:"portMapping"`
	// HealthCheck of the listener.
	// +optional
	HealthCheck *VirtualGatewayHealthCheckPolicy `json:"healthCheck,omitempty"`
	// ConnectionPool limits the load.
	// +optional
	ConnectionPool *VirtualGatewayConnectionPool `json:"connectionPool,omitempty"`
	// TLS that the listener ends.
	// +optional
	TLS *VirtualGatewayListenerTLS `json:"tls,omitempty"`
}

// VirtualGatewaySpec is the desired state of a VirtualGateway.
type VirtualGatewaySpec struct {
	// AWSName is the name of the gateway in the App Mesh API; <name>_<namespace> when absent. It does not change.
	// +optional
	AWSName *string `json:"awsName,omitempty"`
	// NamespaceSelector selects the namespaces whose GatewayRoutes the gateway serves. Absent selects the gateway's own
	// namespace, {} selects all.
	// +optional
	NamespaceSelector *metav1.LabelSelector `json:"namespaceSelector,omitempty"`
	// PodSelector selects the pods that run the gateway, in its namespace. Absent selects none, {} selects all.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// GatewayRouteSelector selects GatewayRoutes by their labels; all when absent.
	// +optional
	GatewayRouteSelector *metav1.LabelSelector `json:"gatewayRouteSelector,omitempty"`
	// Listeners are the ports on which the gateway takes traffic.
	// +kubebuilder:validation:MinItems=0
	// +optional
	Listeners []VirtualGatewayListener `json:"listeners,omitempty"`
	// Logging of the gateway's proxies.
	// +optional
	Logging *Logging `json:"logging,omitempty"`
	// BackendDefaults hold for all connections that the gateway opens.
	// +optional
	BackendDefaults *BackendDefaults `json:"backendDefaults,omitempty"`
	// MeshRef names the mesh of the gateway; filled in by admission.
	// +optional
	MeshRef *MeshReference `json:"meshRef,omitempty"`
}

// VirtualGatewayStatus is the observed state of a VirtualGateway.
type VirtualGatewayStatus struct {
	// VirtualGatewayARN is the ARN of the gateway.
	// +optional
	VirtualGatewayARN *string `json:"virtualGatewayARN,omitempty"`
	// Conditions of the gateway.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the object that the status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}

// VirtualGateway lets traffic from outside into the mesh.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,appmesh}
// +kubebuilder:printcolumn:name="ARN",type="string",JSONPath=".status.virtualGatewayARN",description="The ARN of the virtual gateway"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type VirtualGateway struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +optional
	Spec VirtualGatewaySpec `json:"spec,omitempty"`
	// Status is the observed state.
	// +optional
	Status VirtualGatewayStatus `json:"status,omitempty"`
}

// VirtualGatewayList is a list of VirtualGateways.
// +kubebuilder:object:root=true
type VirtualGatewayList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []VirtualGateway `json:"items"`
}
