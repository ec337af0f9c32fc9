// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

// WeightedTarget is a node that gets a share of a route's traffic; set the reference or the ARN.
type WeightedTarget struct {
	// VirtualNodeRef points to a VirtualNode object of the same mesh.
	// +optional
	VirtualNodeRef *VirtualNodeReference `json:"virtualNodeRef,omitempty"`
	// VirtualNodeARN is the App Mesh ARN of the node; it wins over the reference.
	// +optional
	VirtualNodeARN *string `json:"virtualNodeARN,omitempty"`
	// Weight is the target's share among its fellows, 0 to 100; 0 gets nothing.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	Weight int64 `json:"weight"`
	// Port of the target's listener, 1 to 65535; needed where the node has several.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Port *int64 `json:"port,omitempty"`
}

// RouteAction spreads a route's traffic over its targets.
type RouteAction struct {
	// WeightedTargets share the traffic by weight; one to ten.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	WeightedTargets []WeightedTarget `json:"weightedTargets"`
}

// HTTPRouteMatch is what a request must fulfil; all conditions together, and prefix or path.
type HTTPRouteMatch struct {
	// Prefix of the path, beginning with a slash.
	// +optional
	Prefix *string `json:"prefix,omitempty"`
	// Path matches the whole path.
	// +optional
	Path *HTTPPathMatch `json:"path,omitempty"`
	// QueryParameters that the request must carry.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +optional
	QueryParameters []HTTPQueryParameter `json:"queryParameters,omitempty"`
	// Headers that the request must carry.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Headers []HTTPRouteHeader `json:"headers,omitempty"`
	// Method of the request.
	// +optional
	Method *HTTPMethod `json:"method,omitempty"`
	// Scheme of the request.
	// +optional
	Scheme *HTTPScheme `json:"scheme,omitempty"`
	// Port of the router's listener, 1 to 65535; all when absent.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Port *int64 `json:"port,omitempty"`
}

// HTTPRoute routes HTTP or HTTP/2 requests.
type HTTPRoute struct {
	// Match says which requests take the route.
	Match HTTPRouteMatch `json:"match"`
	// Action says where they go.
	Action RouteAction `json:"action"`
	// RetryPolicy says when a request is sent again; the mesh's default when absent.
	// +optional
	RetryPolicy *HTTPRetryPolicy `json:"retryPolicy,omitempty"`
	// Timeout of requests; 15 s a request when absent.
	// +optional
	Timeout *HTTPTimeout `json:"timeout,omitempty"`
}

// GRPCRouteMatch is what a call must fulfil; all conditions together.
type GRPCRouteMatch struct {
	// ServiceName is the full name of the gRPC service.
	// +optional
	ServiceName *string `json:"serviceName,omitempty"`
	// MethodName of the call; needs serviceName.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=50
	// +optional
	MethodName *string `json:"methodName,omitempty"`
	// Metadata that the call must carry.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Metadata []GRPCRouteMetadata `json:"metadata,omitempty"`
	// Port of the router's listener, 1 to 65535; all when absent.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Port *int64 `json:"port,omitempty"`
}

// GRPCRoute routes gRPC calls.
type GRPCRoute struct {
	// Match says which calls take the route.
	Match GRPCRouteMatch `json:"match"`
	// Action says where they go.
	Action RouteAction `json:"action"`
	// RetryPolicy says when a call is made again; the mesh's default when absent.
	// +optional
	RetryPolicy *GRPCRetryPolicy `json:"retryPolicy,omitempty"`
	// Timeout of calls; 15 s a call when absent.
	// +optional
	Timeout *GRPCTimeout `json:"timeout,omitempty"`
}

// TCPRouteMatch is what a connection must fulfil.
type TCPRouteMatch struct {
	// Port of the router's listener, 1 to 65535; all when absent.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Port *int64 `json:"port,omitempty"`
}

// TCPRoute routes TCP connections.
type TCPRoute struct {
	// Match says which connections take the route; all when absent.
	// +optional
	Match *TCPRouteMatch `json:"match,omitempty"`
	// Action says where they go.
	Action RouteAction `json:"action"`
	// Timeout of connections.
	// +optional
	Timeout *TCPTimeout `json:"timeout,omitempty"`
}

// Route sends some of a router's traffic to nodes; set exactly one of the four protocols' members.
type Route struct {
	// Name of the route, unique in its router.
	Name string `json:"name"`
	// GRPCRoute routes gRPC calls.
	// +optional
	GRPCRoute *GRPCRoute `json:"grpcRoute,omitempty"`
	// HTTPRoute routes HTTP requests.
	// +optional
	HTTPRoute *HTTPRoute `json:"httpRoute,omitempty"`
	// HTTP2Route routes HTTP/2 requests.
	// +optional
	HTTP2Route *HTTPRoute `json:"http2Route,omitempty"`
	// TCPRoute routes TCP connections.
	// +optional
	TCPRoute *TCPRoute `json:"tcpRoute,omitempty"`
	// Priority among the router's routes, 0 (first) to 1000 (last).
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Priority *int64 `json:"priority,omitempty"`
}
