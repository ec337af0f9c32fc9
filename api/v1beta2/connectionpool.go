// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

// HTTPConnectionPool limits HTTP/1.1 connections.
type HTTPConnectionPool struct {
	// MaxConnections that may be open at once.
	// +kubebuilder:validation:Minimum=1
	MaxConnections int64 `json:"maxConnections"`
	// MaxPendingRequests that may wait for a connection.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxPendingRequests *int64 `json:"maxPendingRequests,omitempty"`
}

// TCPConnectionPool limits TCP connections.
type TCPConnectionPool struct {
	// MaxConnections that may be open at once.
	// +kubebuilder:validation:Minimum=1
	MaxConnections int64 `json:"maxConnections"`
}

// HTTP2ConnectionPool limits HTTP/2 requests.
type HTTP2ConnectionPool struct {
	// MaxRequests that may be in flight at once.
	// +kubebuilder:validation:Minimum=1
	MaxRequests int64 `json:"maxRequests"`
}

// GRPCConnectionPool limits gRPC calls.
type GRPCConnectionPool struct {
	// MaxRequests that may be in flight at once.
	// +kubebuilder:validation:Minimum=1
	MaxRequests int64 `json:"maxRequests"`
}

// VirtualNodeConnectionPool limits the load on a node's listener; set the member of the listener's protocol.
type VirtualNodeConnectionPool struct {
	// TCP limits for a tcp listener.
	// +optional
	TCP *TCPConnectionPool `json:"tcp,omitempty"`
	// HTTP limits for an http listener.
	// +optional
	HTTP *HTTPConnectionPool `json:"http,omitempty"`
	// HTTP2 limits for an http2 listener.
	// +optional
	HTTP2 *HTTP2ConnectionPool `json:"http2,omitempty"`
	// GRPC limits for a grpc listener.
	// +optional
	GRPC *GRPCConnectionPool `json:"grpc,omitempty"`
}

// VirtualGatewayConnectionPool limits the load on a gateway's listener; set the member of the listener's protocol.
type VirtualGatewayConnectionPool struct {
	// HTTP limits for an http listener.
	// +optional
	HTTP *HTTPConnectionPool `json:"http,omitempty"`
	// HTTP2 limits for an http2 listener.
	// +optional
	HTTP2 *HTTP2ConnectionPool `json:"http2,omitempty"`
	// GRPC limits for a grpc listener.
	// +optional
	GRPC *GRPCConnectionPool `json:"grpc,omitempty"`
}
