// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

// Route sends the requests that it matches to nodes. Source: App Mesh API, RouteData.
type Route struct {
	Meta
	// RouterName is the virtual router that the route belongs to.
	RouterName string
	// Position is the route's place in a custom resource's list, from 0; it breaks ties of precedence.
	Position int
	Spec     RouteSpec
}

// RouteSpec holds exactly one of the four kinds of route. Source: App Mesh API, RouteSpec.
type RouteSpec struct {
	// Priority is 0 to 1000, 0 first; nil stands behind all of them.
	Priority   *int32     `json:"priority,omitempty"`
	HTTPRoute  *HTTPRoute `json:"httpRoute,omitempty"`
	HTTP2Route *HTTPRoute `json:"http2Route,omitempty"`
	GRPCRoute  *GRPCRoute `json:"grpcRoute,omitempty"`
	TCPRoute   *TCPRoute  `json:"tcpRoute,omitempty"`
}

// HTTPRoute is a route for http or http2. Source: App Mesh API, HttpRoute.
type HTTPRoute struct {
	Match       HTTPRouteMatch `json:"match"`
	Action      RouteAction    `json:"action"`
	Timeout     *HTTPTimeout   `json:"timeout,omitempty"`
	RetryPolicy *RetryPolicy   `json:"retryPolicy,omitempty"`
}

// GRPCRoute is a route for grpc. Source: App Mesh API, GrpcRoute.
type GRPCRoute struct {
	Match       GRPCRouteMatch `json:"match"`
	Action      RouteAction    `json:"action"`
	Timeout     *HTTPTimeout   `json:"timeout,omitempty"`
	RetryPolicy *RetryPolicy   `json:"retryPolicy,omitempty"`
}

// TCPRoute is a route for tcp. Source: App Mesh API, TcpRoute.
type TCPRoute struct {
	Match   *TCPRouteMatch `json:"match,omitempty"`
	Action  RouteAction    `json:"action"`
	Timeout *TCPTimeout    `json:"timeout,omitempty"`
}

// RouteAction is where matched requests go.
type RouteAction struct {
	// WeightedTargets are 1 to 10 nodes whose weights sum to at most 100.
	WeightedTargets []WeightedTarget `json:"weightedTargets"`
}

// WeightedTarget is a node and its share.
type WeightedTarget struct {
	VirtualNode string `json:"virtualNode"`
	// Weight is 0 to 100, relative to the others of the route; 0 takes no requests.
	Weight int32 `json:"weight"`
	// Port is the node's listener; nil where the node has one alone.
	Port *int32 `json:"port,omitempty"`
}

// HTTPRouteMatch are conditions of which all must hold. Source: App Mesh API, HttpRouteMatch.
type HTTPRouteMatch struct {
	// Prefix begins with "/". Exactly one of Prefix and Path is set.
	Prefix *string        `json:"prefix,omitempty"`
	Path   *HTTPPathMatch `json:"path,omitempty"`
	// QueryParameters and Headers are at most 10 each.
	QueryParameters []QueryParameter `json:"queryParameters,omitempty"`
	Method          string           `json:"method,omitempty"`
	// Scheme is "http" or "https"; empty takes both.
	Scheme  string        `json:"scheme,omitempty"`
	Headers []HeaderMatch `json:"headers,omitempty"`
	// Port is the router's listener; nil where it has one alone.
	Port *int32 `json:"port,omitempty"`
}

// HTTPPathMatch matches a whole path; exactly one member is set.
type HTTPPathMatch struct {
	Exact *string `json:"exact,omitempty"`
	// Regex is in RE2's syntax and matches the whole path.
	Regex *string `json:"regex,omitempty"`
}

// QueryParameter matches one parameter of the query.
type QueryParameter struct {
	Name string `json:"name"`
	// Match is nil for "is present".
	Match *QueryParameterMatch `json:"match,omitempty"`
}

// QueryParameterMatch matches a parameter's value.
type QueryParameterMatch struct {
	Exact *string `json:"exact,omitempty"`
}

// HeaderMatch matches one header, or one metadata entry of gRPC. Source: App Mesh API, HttpRouteHeader and GrpcRouteMetadata.
type HeaderMatch struct {
	// Name is 1 to 50 characters.
	Name   string `json:"name"`
	Invert bool   `json:"invert,omitempty"`
	// Match is nil for "is present".
	Match *ValueMatch `json:"match,omitempty"`
}

// ValueMatch is a union of which exactly one member is set; strings are 1 to 255 characters.
type ValueMatch struct {
	Exact  *string     `json:"exact,omitempty"`
	Prefix *string     `json:"prefix,omitempty"`
	Suffix *string     `json:"suffix,omitempty"`
	Regex  *string     `json:"regex,omitempty"`
	Range  *MatchRange `json:"range,omitempty"`
}

// MatchRange matches integers from Start up to, but without, End.
type MatchRange struct {
	Start int64 `json:"start"`
	End   int64 `json:"end"`
}

// GRPCRouteMatch are conditions of which all must hold. Source: App Mesh API, GrpcRouteMatch.
type GRPCRouteMatch struct {
	ServiceName string `json:"serviceName,omitempty"`
	// MethodName needs ServiceName; 1 to 50 characters.
	MethodName string        `json:"methodName,omitempty"`
	Metadata   []HeaderMatch `json:"metadata,omitempty"`
	Port       *int32        `json:"port,omitempty"`
}

// TCPRouteMatch says which of the router's listeners a route serves.
type TCPRouteMatch struct {
	Port *int32 `json:"port,omitempty"`
}

// RetryPolicy says when and how often a request is sent again. Source: App Mesh API, HttpRetryPolicy and GrpcRetryPolicy.
type RetryPolicy struct {
	// MaxRetries is 0 or more; 0 switches retries off.
	MaxRetries int64 `json:"maxRetries"`
	// PerRetryTimeout limits each attempt, the first one too.
	PerRetryTimeout *Duration `json:"perRetryTimeout"`
	// HTTPRetryEvents are of server-error, gateway-error, client-error, stream-error.
	HTTPRetryEvents []string `json:"httpRetryEvents,omitempty"`
	// TCPRetryEvents are of connection-error.
	TCPRetryEvents []string `json:"tcpRetryEvents,omitempty"`
	// GRPCRetryEvents are of cancelled, deadline-exceeded, internal, resource-exhausted, unavailable; for grpc routes alone.
	GRPCRetryEvents []string `json:"grpcRetryEvents,omitempty"`
}
