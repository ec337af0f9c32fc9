// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

// LegacyPortProtocol is the protocol of a v1beta1 listener. https stands in v1beta1's schema only; the mesh has no such
// protocol.
// +kubebuilder:validation:Enum=tcp;http;grpc;http2;https
type LegacyPortProtocol string

// LegacyPortMapping is the port and the protocol of a v1beta1 listener.
type LegacyPortMapping struct {
	// Port, 1 to 65535.
	Port int64 `json:"port"`
	// Protocol that is spoken on the port.
	Protocol LegacyPortProtocol `json:"protocol"`
}

// LegacyVirtualRouterListener is a port on which a v1beta1 service's own router takes traffic.
type LegacyVirtualRouterListener struct {
	// PortMapping is the port and the protocol.
	PortMapping LegacyPortMapping `json:"portMapping"`
}

// LegacyVirtualRouter is the router that every v1beta1 service has.
type LegacyVirtualRouter struct {
	// Name of the router; the service's when absent.
	// +optional
	Name string `json:"name,omitempty"`
	// Listeners of the router; that of the first route's first target when absent.
	// +optional
	Listeners []LegacyVirtualRouterListener `json:"listeners,omitempty"`
}

// LegacyWeightedTarget is a node that gets a share of a v1beta1 route's traffic.
type LegacyWeightedTarget struct {
	// VirtualNodeName is the name of a VirtualNode object in the same namespace, <name>.<namespace>, or the node's App
	// Mesh name; the first that exists.
	VirtualNodeName string `json:"virtualNodeName"`
	// Weight is the target's share among its fellows, 0 to 100; 0 gets nothing.
	Weight int64 `json:"weight"`
}

// LegacyRouteAction spreads a v1beta1 route's traffic over its targets.
type LegacyRouteAction struct {
	// WeightedTargets share the traffic by weight.
	// +optional
	WeightedTargets []LegacyWeightedTarget `json:"weightedTargets,omitempty"`
}

// LegacyHTTPRouteMatch is what a request must fulfil to take a v1beta1 route.
type LegacyHTTPRouteMatch struct {
	// Prefix of the path, beginning with a slash.
	Prefix string `json:"prefix"`
	// Method of the request.
	// +optional
	Method *string `json:"method,omitempty"`
	// Scheme of the request.
	// +optional
	Scheme *string `json:"scheme,omitempty"`
	// Headers that the request must carry.
	// +optional
	Headers []HTTPRouteHeader `json:"headers,omitempty"`
}

// LegacyHTTPRetryPolicy says when a request on a v1beta1 route is sent again.
type LegacyHTTPRetryPolicy struct {
	// PerRetryTimeoutMillis limits each attempt, in milliseconds.
	// +optional
	PerRetryTimeoutMillis *int64 `json:"perRetryTimeoutMillis,omitempty"`
	// MaxRetries after the first attempt; 0 or more.
	// +optional
	MaxRetries *int64 `json:"maxRetries,omitempty"`
	// HTTPRetryEvents are the HTTP answers on which to retry.
	// +optional
	HTTPRetryEvents []HTTPRetryPolicyEvent `json:"httpRetryEvents,omitempty"`
	// TCPRetryEvents are the connection failures on which to retry.
	// +optional
	TCPRetryEvents []TCPRetryPolicyEvent `json:"tcpRetryEvents,omitempty"`
}

// LegacyHTTPRoute is a v1beta1 route for HTTP or HTTP/2 requests.
type LegacyHTTPRoute struct {
	// Match says which requests take the route.
	Match LegacyHTTPRouteMatch `json:"match"`
	// Action says where they go.
	Action LegacyRouteAction `json:"action"`
	// RetryPolicy says when a request is sent again.
	// +optional
	RetryPolicy *LegacyHTTPRetryPolicy `json:"retryPolicy,omitempty"`
}

// LegacyTCPRoute is a v1beta1 route for TCP connections.
type LegacyTCPRoute struct {
	// Action says where they go.
	Action LegacyRouteAction `json:"action"`
}

// LegacyGRPCRouteMatch is what a call must fulfil to take a v1beta1 route.
type LegacyGRPCRouteMatch struct {
	// ServiceName is the full name of the gRPC service.
	// +optional
	ServiceName *string `json:"serviceName,omitempty"`
	// MethodName of the call; needs serviceName.
	// +optional
	MethodName *string `json:"methodName,omitempty"`
	// Metadata that the call must carry.
	// +optional
	Metadata []GRPCRouteMetadata `json:"metadata,omitempty"`
}

// LegacyGRPCRetryPolicy says when a call on a v1beta1 route is made again.
type LegacyGRPCRetryPolicy struct {
	LegacyHTTPRetryPolicy `json:",inline"`

	// GRPCRetryEvents are the gRPC statuses on which to retry.
	// +optional
	GRPCRetryEvents []GRPCRetryPolicyEvent `json:"grpcRetryEvents,omitempty"`
}

// LegacyGRPCRoute is a v1beta1 route for gRPC calls.
type LegacyGRPCRoute struct {
	// Match says which calls take the route.
	Match LegacyGRPCRouteMatch `json:"match"`
	// Action says where they go.
	Action LegacyRouteAction `json:"action"`
	// RetryPolicy says when a call is made again.
	// +optional
	RetryPolicy *LegacyGRPCRetryPolicy `json:"retryPolicy,omitempty"`
}

// LegacyRoute is a route of a v1beta1 service's own router; set exactly one of the four protocols' members.
type LegacyRoute struct {
	// Name of the route, unique in its service.
	// +optional
	Name string `json:"name,omitempty"`
	// Priority among the service's routes, 0 (first) to 1000 (last).
	// +optional
	Priority *int64 `json:"priority,omitempty"`
	// HTTP routes HTTP requests.
	// +optional
	HTTP *LegacyHTTPRoute `json:"http,omitempty"`
	// HTTP2 routes HTTP/2 requests.
	// +optional
	HTTP2 *LegacyHTTPRoute `json:"http2,omitempty"`
	// GRPC routes gRPC calls.
	// +optional
	GRPC *LegacyGRPCRoute `json:"grpc,omitempty"`
	// TCP routes TCP connections.
	// +optional
	TCP *LegacyTCPRoute `json:"tcp,omitempty"`
}

// LegacyCloudMapServiceStatus identifies the Cloud Map service of a v1beta1 node.
type LegacyCloudMapServiceStatus struct {
	// ServiceID of the service.
	// +optional
	ServiceID *string `json:"serviceId,omitempty"`
	// NamespaceID of its namespace.
	// +optional
	NamespaceID *string `json:"namespaceId,omitempty"`
}
