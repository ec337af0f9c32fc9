// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

// HealthCheckPolicy says how callers' proxies probe a node's endpoints.
type HealthCheckPolicy struct {
	// HealthyThreshold is the number of successes in a row that make an endpoint healthy, 2 to 10.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=10
	HealthyThreshold int64 `json:"healthyThreshold"`
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
	Protocol PortProtocol `json:"protocol"`
	// TimeoutMillis is how long a probe may take in milliseconds, 2000 to 60000.
	// +kubebuilder:validation:Minimum=2000
	// +kubebuilder:validation:Maximum=60000
	TimeoutMillis int64 `json:"timeoutMillis"`
	// UnhealthyThreshold is the number of failures in a row that make an endpoint unhealthy, 2 to 10.
	// +kubebuilder:validation:Minimum=2
	// +kubebuilder:validation:Maximum=10
	UnhealthyThreshold int64 `json:"unhealthyThreshold"`
}

// OutlierDetection lets callers' proxies leave out endpoints that fail real requests.
type OutlierDetection struct {
	// MaxServerErrors is the number of 5xx answers in a row after which an endpoint is left out; 1 or more.
	// +kubebuilder:validation:Minimum=1
	MaxServerErrors int64 `json:"maxServerErrors"`
	// Interval between two looks at the endpoints.
	Interval Duration `json:"interval"`
	// BaseEjectionDuration is how long an endpoint stays left out, times the number of times it was.
	BaseEjectionDuration Duration `json:"baseEjectionDuration"`
	// MaxEjectionPercent is the greatest share of endpoints that may be left out, 0 to 100.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	MaxEjectionPercent int64 `json:"maxEjectionPercent"`
}

// ListenerTimeout holds the timeouts of a listener; set the member of its protocol.
type ListenerTimeout struct {
	// TCP timeouts for a tcp listener.
	// +optional
	TCP *TCPTimeout `json:"tcp,omitempty"`
	// HTTP timeouts for an http listener.
	// +optional
	HTTP *HTTPTimeout `json:"http,omitempty"`
	// HTTP2 timeouts for an http2 listener.
	// +optional
	HTTP2 *HTTPTimeout `json:"http2,omitempty"`
	// GRPC timeouts for a grpc listener.
	// +optional
	GRPC *GRPCTimeout `json:"grpc,omitempty"`
}

// ListenerTLSValidationContextTrust is the trust anchor for a node's clients; set exactly one member.
type ListenerTLSValidationContextTrust struct {
	// File is a bundle in the proxy's file system.
	// +optional
	File *TLSValidationContextFileTrust `json:"file,omitempty"`
	// SDS asks the secret discovery service of the proxy's node.
	// +optional
	SDS *TLSValidationContextSDSTrust `json:"sds,omitempty"`
}

// ListenerTLSValidationContext says how a node verifies the certificates of its clients.
type ListenerTLSValidationContext struct {
	// Trust anchor that must have signed the certificate.
	Trust ListenerTLSValidationContextTrust `json:"trust"`
	// SubjectAlternativeNames that are accepted; any when absent.
	// +optional
	SubjectAlternativeNames *SubjectAlternativeNames `json:"subjectAlternativeNames,omitempty"`
}

// ListenerTLS ends TLS at a node's listener.
type ListenerTLS struct {
	// Certificate that the listener shows.
	Certificate ListenerTLSCertificate `json:"certificate"`
	// Mode is STRICT for TLS alone, PERMISSIVE for TLS and plaintext, DISABLED for plaintext.
	Mode ListenerTLSMode `json:"mode"`
	// Validation of client certificates, for mutual TLS.
	// +optional
	Validation *ListenerTLSValidationContext `json:"validation,omitempty"`
}

// Listener is a port on which a node takes traffic.
type Listener struct {
	// PortMapping is the application's port and protocol.
	PortMapping PortMapping `json:"portMapping"`
	// HealthCheck by which callers' proxies probe the node.
	// +optional
	HealthCheck *HealthCheckPolicy `json:"healthCheck,omitempty"`
	// OutlierDetection by which callers' proxies leave out failing endpoints.
	// +optional
	OutlierDetection *OutlierDetection `json:"outlierDetection,omitempty"`
	// ConnectionPool limits the load.
	// +optional
	ConnectionPool *VirtualNodeConnectionPool `json:"connectionPool,omitempty"`
	// TLS that the listener ends.
	// +optional
	TLS *ListenerTLS `json:"tls,omitempty"`
	// Timeout of requests and connections.
	// +optional
	Timeout *ListenerTimeout `json:"timeout,omitempty"`
}
