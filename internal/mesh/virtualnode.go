// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

// VirtualNode is a group of workloads that serve the same thing, and the proxies beside them. Source: App Mesh API, VirtualNodeData.
type VirtualNode struct {
	Meta
	Spec VirtualNodeSpec
	// SelectsPods says that the node names its own pods (podSelector, or the owner's name in v1beta1), so that its endpoints can be those pods.
	SelectsPods bool
}

// VirtualNodeSpec is the part of a node that its owner decides. Source: App Mesh API, VirtualNodeSpec.
type VirtualNodeSpec struct {
	// Listeners are the ports on which the workloads serve; none for a client alone.
	Listeners []Listener `json:"listeners,omitempty"`
	// ServiceDiscovery says how callers find the workloads.
	ServiceDiscovery *ServiceDiscovery `json:"serviceDiscovery,omitempty"`
	// Backends are the virtual services that the workloads may call.
	Backends []Backend `json:"backends,omitempty"`
	// BackendDefaults holds for backends that say nothing themselves.
	BackendDefaults *BackendDefaults `json:"backendDefaults,omitempty"`
	Logging         *Logging         `json:"logging,omitempty"`
}

// Backend is something that a node may call; exactly one member is set.
type Backend struct {
	VirtualService *VirtualServiceBackend `json:"virtualService,omitempty"`
}

// VirtualServiceBackend is a virtual service that a node may call.
type VirtualServiceBackend struct {
	VirtualServiceName string `json:"virtualServiceName"`
	// ClientPolicy replaces the node's default whole; nil leaves the default.
	ClientPolicy *ClientPolicy `json:"clientPolicy,omitempty"`
}

// BackendDefaults holds for all backends of a node or gateway that have no policy of their own.
type BackendDefaults struct {
	ClientPolicy *ClientPolicy `json:"clientPolicy,omitempty"`
}

// Listener is a port on which a node's workloads serve. Source: App Mesh API, Listener.
type Listener struct {
	PortMapping      PortMapping        `json:"portMapping"`
	HealthCheck      *HealthCheckPolicy `json:"healthCheck,omitempty"`
	Timeout          *ListenerTimeout   `json:"timeout,omitempty"`
	TLS              *ListenerTLS       `json:"tls,omitempty"`
	ConnectionPool   *ConnectionPool    `json:"connectionPool,omitempty"`
	OutlierDetection *OutlierDetection  `json:"outlierDetection,omitempty"`
}

// PortMapping is a port and what is spoken on it.
type PortMapping struct {
	// Port is 1 to 65535.
	Port     int32    `json:"port"`
	Protocol Protocol `json:"protocol"`
}

// Protocol is what is spoken on a port.
type Protocol string

// The protocols of the App Mesh API; a gateway has no tcp.
const (
	ProtocolHTTP  Protocol = "http"
	ProtocolHTTP2 Protocol = "http2"
	ProtocolGRPC  Protocol = "grpc"
	ProtocolTCP   Protocol = "tcp"
)

// ListenerTimeout is a union: exactly the member of the listener's protocol is set.
type ListenerTimeout struct {
	HTTP  *HTTPTimeout `json:"http,omitempty"`
	HTTP2 *HTTPTimeout `json:"http2,omitempty"`
	GRPC  *HTTPTimeout `json:"grpc,omitempty"`
	TCP   *TCPTimeout  `json:"tcp,omitempty"`
}

// HTTPTimeout are the limits of a request over http, http2 or grpc. Source: App Mesh API, HttpTimeout and GrpcTimeout.
type HTTPTimeout struct {
	// PerRequest covers a request with all its retries; nil is the default of the place where it stands, 0 none.
	PerRequest *Duration `json:"perRequest,omitempty"`
	// Idle ends a stream on which nothing moves; nil is Envoy's default, 0 none.
	Idle *Duration `json:"idle,omitempty"`
}

// TCPTimeout is the limit of a TCP connection on which nothing moves.
type TCPTimeout struct {
	Idle *Duration `json:"idle,omitempty"`
}

// HealthCheckPolicy is the active check that callers' proxies make of each endpoint. Source: App Mesh API, HealthCheckPolicy.
type HealthCheckPolicy struct {
	// HealthyThreshold and UnhealthyThreshold count checks in a row; 2 to 10.
	HealthyThreshold   int32 `json:"healthyThreshold"`
	UnhealthyThreshold int32 `json:"unhealthyThreshold"`
	// IntervalMillis is 5000 to 300000.
	IntervalMillis int64 `json:"intervalMillis"`
	// TimeoutMillis is 2000 to 60000.
	TimeoutMillis int64 `json:"timeoutMillis"`
	// Path is for http and http2 alone.
	Path string `json:"path,omitempty"`
	// Port is the listener's; 0 means not given.
	Port     int32    `json:"port,omitempty"`
	Protocol Protocol `json:"protocol"`
}

// OutlierDetection ejects endpoints that fail, at every caller. Source: App Mesh API, OutlierDetection.
type OutlierDetection struct {
	// MaxServerErrors is the number of consecutive 5xx; 1 or more.
	MaxServerErrors      int64     `json:"maxServerErrors"`
	Interval             *Duration `json:"interval"`
	BaseEjectionDuration *Duration `json:"baseEjectionDuration"`
	// MaxEjectionPercent is 0 to 100.
	MaxEjectionPercent int32 `json:"maxEjectionPercent"`
}

// ConnectionPool limits what a proxy sends to its own workload; a union of which exactly one member is set. A gateway has no tcp.
type ConnectionPool struct {
	HTTP  *HTTPConnectionPool    `json:"http,omitempty"`
	HTTP2 *RequestConnectionPool `json:"http2,omitempty"`
	GRPC  *RequestConnectionPool `json:"grpc,omitempty"`
	TCP   *TCPConnectionPool     `json:"tcp,omitempty"`
}

// HTTPConnectionPool limits HTTP/1.1.
type HTTPConnectionPool struct {
	// MaxConnections is 1 or more.
	MaxConnections int32 `json:"maxConnections"`
	// MaxPendingRequests is 1 or more; nil means no limit.
	MaxPendingRequests *int32 `json:"maxPendingRequests,omitempty"`
}

// RequestConnectionPool limits HTTP/2 and gRPC.
type RequestConnectionPool struct {
	// MaxRequests is 1 or more.
	MaxRequests int32 `json:"maxRequests"`
}

// TCPConnectionPool limits TCP.
type TCPConnectionPool struct {
	// MaxConnections is 1 or more.
	MaxConnections int32 `json:"maxConnections"`
}
