// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

// GatewayRoute sends requests that reach a gateway to a virtual service. Source: App Mesh API, GatewayRouteData.
type GatewayRoute struct {
	Meta
	// GatewayName is the virtual gateway that the route belongs to.
	GatewayName string
	Spec        GatewayRouteSpec
}

// GatewayRouteSpec holds exactly one of the three kinds of route. Source: App Mesh API, GatewayRouteSpec.
type GatewayRouteSpec struct {
	// Priority is 0 to 1000, 0 first; nil stands behind all of them.
	Priority   *int32            `json:"priority,omitempty"`
	HTTPRoute  *HTTPGatewayRoute `json:"httpRoute,omitempty"`
	HTTP2Route *HTTPGatewayRoute `json:"http2Route,omitempty"`
	GRPCRoute  *GRPCGatewayRoute `json:"grpcRoute,omitempty"`
}

// HTTPGatewayRoute is a gateway's route for http or http2.
type HTTPGatewayRoute struct {
	Match  HTTPGatewayRouteMatch  `json:"match"`
	Action HTTPGatewayRouteAction `json:"action"`
}

// HTTPGatewayRouteMatch are conditions of which all must hold; at least one of Prefix, Path and Hostname is set, and not both Prefix and Path.
type HTTPGatewayRouteMatch struct {
	Prefix          *string          `json:"prefix,omitempty"`
	Path            *HTTPPathMatch   `json:"path,omitempty"`
	QueryParameters []QueryParameter `json:"queryParameters,omitempty"`
	Method          string           `json:"method,omitempty"`
	Hostname        *HostnameMatch   `json:"hostname,omitempty"`
	Headers         []HeaderMatch    `json:"headers,omitempty"`
	Port            *int32           `json:"port,omitempty"`
}

// HostnameMatch matches the host that a client asked for; exactly one member is set, 1 to 253 characters.
type HostnameMatch struct {
	Exact  *string `json:"exact,omitempty"`
	Suffix *string `json:"suffix,omitempty"`
}

// HTTPGatewayRouteAction is where matched requests go, and what is changed on the way.
type HTTPGatewayRouteAction struct {
	Target  GatewayRouteTarget       `json:"target"`
	Rewrite *HTTPGatewayRouteRewrite `json:"rewrite,omitempty"`
}

// GatewayRouteTarget is the virtual service that answers.
type GatewayRouteTarget struct {
	VirtualService GatewayRouteVirtualService `json:"virtualService"`
	// Port is the provider's listener; nil where it has one alone.
	Port *int32 `json:"port,omitempty"`
}

// GatewayRouteVirtualService names a virtual service.
type GatewayRouteVirtualService struct {
	VirtualServiceName string `json:"virtualServiceName"`
}

// HTTPGatewayRouteRewrite says what is changed in a request; not both Prefix and Path are set.
type HTTPGatewayRouteRewrite struct {
	Prefix   *PrefixRewrite   `json:"prefix,omitempty"`
	Path     *PathRewrite     `json:"path,omitempty"`
	Hostname *HostnameRewrite `json:"hostname,omitempty"`
}

// PrefixRewrite replaces the matched prefix; exactly one member is set.
type PrefixRewrite struct {
	// DefaultPrefix is ENABLED (the prefix becomes "/") or DISABLED (it stays).
	DefaultPrefix DefaultRewrite `json:"defaultPrefix,omitempty"`
	// Value begins and ends with "/".
	Value *string `json:"value,omitempty"`
}

// PathRewrite replaces the whole path.
type PathRewrite struct {
	Exact *string `json:"exact,omitempty"`
}

// HostnameRewrite says whether the host becomes the virtual service's name.
type HostnameRewrite struct {
	DefaultTargetHostname DefaultRewrite `json:"defaultTargetHostname,omitempty"`
}

// DefaultRewrite switches a gateway's default rewrite; empty is ENABLED.
type DefaultRewrite string

// The values of DefaultRewrite.
const (
	RewriteEnabled  DefaultRewrite = "ENABLED"
	RewriteDisabled DefaultRewrite = "DISABLED"
)

// GRPCGatewayRoute is a gateway's route for grpc.
type GRPCGatewayRoute struct {
	Match  GRPCGatewayRouteMatch  `json:"match"`
	Action GRPCGatewayRouteAction `json:"action"`
}

// GRPCGatewayRouteMatch are conditions of which all must hold; at least one of ServiceName and Hostname is set.
type GRPCGatewayRouteMatch struct {
	ServiceName string         `json:"serviceName,omitempty"`
	Hostname    *HostnameMatch `json:"hostname,omitempty"`
	Metadata    []HeaderMatch  `json:"metadata,omitempty"`
	Port        *int32         `json:"port,omitempty"`
}

// GRPCGatewayRouteAction is where matched calls go, and what is changed on the way.
type GRPCGatewayRouteAction struct {
	Target  GatewayRouteTarget       `json:"target"`
	Rewrite *GRPCGatewayRouteRewrite `json:"rewrite,omitempty"`
}

// GRPCGatewayRouteRewrite says what is changed in a call.
type GRPCGatewayRouteRewrite struct {
	Hostname *HostnameRewrite `json:"hostname,omitempty"`
}
