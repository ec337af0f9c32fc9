// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// HealthCheckPolicy says how callers' proxies probe a node's endpoints. Every field has a default.
type HealthCheckPolicy struct {
	// HealthyThreshold is the number of successes in a row that make an endpoint healthy; 10 when absent.
	// +optional
	HealthyThreshold *int64 `json:"healthyThreshold,omitempty"`
	// IntervalMillis is the time between two probes in milliseconds; 30000 when absent.
	// +optional
	IntervalMillis *int64 `json:"intervalMillis,omitempty"`
	// Path of an http or http2 probe.
	// +optional
	Path *string `json:"path,omitempty"`
	// Port of the probe; the listener's when absent.
	// +optional
	Port *int64 `json:"port,omitempty"`
	// Protocol of the probe; the listener's when absent.
	// +optional
	Protocol *v1beta2.PortProtocol `json:"protocol,omitempty"`
	// TimeoutMillis is how long a probe may take in milliseconds; 5000 when absent.
	// +optional
	TimeoutMillis *int64 `json:"timeoutMillis,omitempty"`
	// UnhealthyThreshold is the number of failures in a row that make an endpoint unhealthy; 2 when absent.
	// +optional
	UnhealthyThreshold *int64 `json:"unhealthyThreshold,omitempty"`
}

// ACMCertificate is a certificate of AWS Certificate Manager.
type ACMCertificate struct {
	// CertificateArn of the certificate.
	CertificateArn string `json:"certificateArn"`
}

// ListenerTLSCertificate is the certificate of a listener; set exactly one member.
type ListenerTLSCertificate struct {
	// ACM names a certificate of AWS Certificate Manager.
	// +optional
	ACM *ACMCertificate `json:"acm,omitempty"`
	// File reads it from the proxy's file system.
	// +optional
	File *v1beta2.TLSFileCertificate `json:"file,omitempty"`
	// SDS is carried for v1beta2: the secret discovery service's name of it.
	// +optional
	SDS *v1beta2.TLSSDSCertificate `json:"sds,omitempty"`
}

// ListenerTLS ends TLS at a node's listener.
type ListenerTLS struct {
	// Mode is STRICT for TLS alone, PERMISSIVE for TLS and plaintext, DISABLED for plaintext.
	Mode v1beta2.ListenerTLSMode `json:"mode"`
	// Certificate that the listener shows.
	Certificate ListenerTLSCertificate `json:"certificate"`
	// Validation is carried for v1beta2: how client certificates are verified.
	// +optional
	Validation *v1beta2.ListenerTLSValidationContext `json:"validation,omitempty"`
}

// Listener is a port on which a node takes traffic.
type Listener struct {
	// PortMapping is the application's port and protocol.
	PortMapping v1beta2.LegacyPortMapping `json:"portMapping"`
	// HealthCheck by which callers' proxies probe the node.
	// +optional
	HealthCheck *HealthCheckPolicy `json:"healthCheck,omitempty"`
	// TLS that the listener ends.
	// +optional
	TLS *ListenerTLS `json:"tls,omitempty"`
	// OutlierDetection is carried for v1beta2: how callers leave out failing endpoints.
	// +optional
	OutlierDetection *v1beta2.OutlierDetection `json:"outlierDetection,omitempty"`
	// ConnectionPool is carried for v1beta2: the limits on the load.
	// +optional
	ConnectionPool *v1beta2.VirtualNodeConnectionPool `json:"connectionPool,omitempty"`
	// Timeout is carried for v1beta2: the timeouts of requests and connections.
	// +optional
	Timeout *v1beta2.ListenerTimeout `json:"timeout,omitempty"`
}

// CloudMapServiceDiscovery finds endpoints among the pods registered under a service name.
type CloudMapServiceDiscovery struct {
	// NamespaceName of the service.
	// +optional
	NamespaceName string `json:"namespaceName,omitempty"`
	// ServiceName under which the pods are registered.
	// +optional
	ServiceName string `json:"serviceName,omitempty"`
	// Attributes that narrow the choice; an endpoint must carry them all.
	// +optional
	Attributes map[string]string `json:"attributes,omitempty"`
	// AttributeList is carried for v1beta2: the attributes in the order in which they were written there. It counts while
	// it says the same as attributes.
	// +optional
	AttributeList []v1beta2.AWSCloudMapInstanceAttribute `json:"attributeList,omitempty"`
}

// DNSServiceDiscovery finds endpoints by a host name.
type DNSServiceDiscovery struct {
	// HostName to resolve.
	// +optional
	HostName string `json:"hostName,omitempty"`
	// ResponseType is carried for v1beta2: how the addresses of an answer are used.
	// +optional
	ResponseType *v1beta2.DNSResponseType `json:"responseType,omitempty"`
}

// ServiceDiscovery says how callers find a node's endpoints; set exactly one member.
type ServiceDiscovery struct {
	// CloudMap finds them by service name and attributes.
	// +optional
	CloudMap *CloudMapServiceDiscovery `json:"cloudMap,omitempty"`
	// DNS finds them by host name.
	// +optional
	DNS *DNSServiceDiscovery `json:"dns,omitempty"`
}

// ACMTrust trusts certificate authorities by ARN.
type ACMTrust struct {
	// CertificateAuthorityArns are the trusted authorities.
	// +optional
	CertificateAuthorityArns []string `json:"certificateAuthorityArns,omitempty"`
}

// TLSTrust is the trust anchor for backends; set exactly one member.
type TLSTrust struct {
	// ACM names certificate authorities of AWS Certificate Manager.
	// +optional
	ACM *ACMTrust `json:"acm,omitempty"`
	// File is a bundle in the proxy's file system.
	// +optional
	File *v1beta2.TLSValidationContextFileTrust `json:"file,omitempty"`
	// SDS is carried for v1beta2: what a secret discovery service delivers.
	// +optional
	SDS *v1beta2.TLSValidationContextSDSTrust `json:"sds,omitempty"`
}

// TLSValidation says how a backend's certificate is verified.
type TLSValidation struct {
	// Trust anchor that must have signed the certificate.
	// +optional
	Trust TLSTrust `json:"trust,omitempty"`
	// SubjectAlternativeNames is carried for v1beta2: the names that are accepted.
	// +optional
	SubjectAlternativeNames *v1beta2.SubjectAlternativeNames `json:"subjectAlternativeNames,omitempty"`
}

// ClientPolicyTLS holds the TLS settings of connections to backends.
type ClientPolicyTLS struct {
	// Enforce refuses backends that do not speak TLS; true when absent.
	// +optional
	Enforce *bool `json:"enforce,omitempty"`
	// Ports to which the policy is limited; all when empty.
	// +optional
	Ports []v1beta2.PortNumber `json:"ports,omitempty"`
	// Validation of the server's certificate.
	// +optional
	Validation TLSValidation `json:"validation,omitempty"`
	// Certificate is carried for v1beta2: the certificate that the client shows.
	// +optional
	Certificate *v1beta2.ClientTLSCertificate `json:"certificate,omitempty"`
}

// ClientPolicy says how a proxy opens connections to backends.
type ClientPolicy struct {
	// TLS of the connections; without it they are plaintext.
	// +optional
	TLS *ClientPolicyTLS `json:"tls,omitempty"`
}

// VirtualServiceBackend is a service that a node calls.
type VirtualServiceBackend struct {
	// VirtualServiceName is the App Mesh name of the service, as it stands.
	VirtualServiceName string `json:"virtualServiceName"`
	// VirtualServiceRef is carried for v1beta2: a reference in place of the name.
	// +optional
	VirtualServiceRef *v1beta2.VirtualServiceReference `json:"virtualServiceRef,omitempty"`
	// VirtualServiceARN is carried for v1beta2: an ARN in place of the name.
	// +optional
	VirtualServiceARN *string `json:"virtualServiceARN,omitempty"`
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

// FileAccessLog is an access log in a file.
type FileAccessLog struct {
	// Path of the file; /dev/stdout for the container's output.
	Path string `json:"path"`
	// Format is carried for v1beta2: the format of a line.
	// +optional
	Format *v1beta2.LoggingFormat `json:"format,omitempty"`
}

// AccessLog is where a proxy writes a line for each request.
type AccessLog struct {
	// File to which lines are appended.
	// +optional
	File *FileAccessLog `json:"file,omitempty"`
}

// Logging holds the log settings of a proxy.
type Logging struct {
	// AccessLog of the proxy.
	// +optional
	AccessLog *AccessLog `json:"accessLog,omitempty"`
}

// VirtualNodeSpec is the desired state of a VirtualNode.
type VirtualNodeSpec struct {
	// MeshName is the name of the Mesh object to which the node belongs.
	MeshName string `json:"meshName"`
	// Listeners are the ports on which the node takes traffic; none for a node that only calls.
	// +optional
	Listeners []Listener `json:"listeners,omitempty"`
	// ServiceDiscovery says how callers find the node's endpoints.
	// +optional
	ServiceDiscovery *ServiceDiscovery `json:"serviceDiscovery,omitempty"`
	// Backends are the services that the node calls.
	// +optional
	Backends []Backend `json:"backends,omitempty"`
	// BackendDefaults hold for backends that say nothing themselves.
	// +optional
	BackendDefaults *BackendDefaults `json:"backendDefaults,omitempty"`
	// Logging of the node's proxies.
	// +optional
	Logging *Logging `json:"logging,omitempty"`
	// WrittenIn is carried for v1beta2: it says v1beta2 where the object was made in that version, and is absent otherwise.
	// +optional
	WrittenIn Origin `json:"writtenIn,omitempty"`
	// AWSName is carried for v1beta2: the App Mesh name where it is not what this version gives.
	// +optional
	AWSName *string `json:"awsName,omitempty"`
	// MeshRef is carried for v1beta2: the mesh where there is more to say of it than meshName does.
	// +optional
	MeshRef *v1beta2.MeshReference `json:"meshRef,omitempty"`
	// PodSelector is carried for v1beta2: the pods of the node, in place of the owner's name.
	// +optional
	PodSelector *metav1.LabelSelector `json:"podSelector,omitempty"`
	// BackendGroups is carried for v1beta2: groups of further backends.
	// +optional
	BackendGroups []v1beta2.BackendGroupReference `json:"backendGroups,omitempty"`
}

// VirtualNodeStatus is the observed state of a VirtualNode.
type VirtualNodeStatus struct {
	// MeshArn is the ARN of the node's mesh.
	// +optional
	MeshArn *string `json:"meshArn,omitempty"`
	// VirtualNodeArn is the ARN of the node.
	// +optional
	VirtualNodeArn *string `json:"virtualNodeArn,omitempty"`
	// CloudMapService is kept from objects of the original controller; nothing writes it.
	// +optional
	CloudMapService *v1beta2.LegacyCloudMapServiceStatus `json:"cloudmapService,omitempty"`
	// Conditions of the node.
	// +optional
	Conditions []v1beta2.Condition `json:"conditions,omitempty"`
	// ObservedGeneration is carried for v1beta2: the generation of the object that the status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}

// VirtualNode stands for a workload: the ports it serves and the services it calls. Its pods are those of the workload
// (Deployment, StatefulSet ...) of the same name, and those whose annotation appmesh.k8s.aws/virtualNode names it.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,appmesh}
type VirtualNode struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	Spec VirtualNodeSpec `json:"spec"`
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
