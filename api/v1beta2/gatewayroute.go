// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// GatewayRouteVirtualService is where a gateway route leads; set the reference or the ARN.
type GatewayRouteVirtualService struct {
	// VirtualServiceRef points to a VirtualService object of the same mesh.
	// +optional
	VirtualServiceRef *VirtualServiceReference `json:"virtualServiceRef,omitempty"`
	// VirtualServiceARN is the App Mesh ARN of the service; it wins over the reference.
	// +optional
	VirtualServiceARN *string `json:"virtualServiceARN,omitempty"`
}

// GatewayRouteTarget is where a gateway route leads.
type GatewayRouteTarget struct {
	// VirtualService that gets the traffic.
	VirtualService GatewayRouteVirtualService `json:"virtualService"`
	// Port of the service, 1 to 65535; needed where its provider has several listeners.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Port *int64 `json:"port,omitempty"`
}

// DefaultGatewayRouteRewrite turns a default rewrite on or off.
// +kubebuilder:validation:Enum=ENABLED;DISABLED
type DefaultGatewayRouteRewrite string

// The states of a default rewrite.
const (
	DefaultGatewayRouteRewriteEnabled  DefaultGatewayRouteRewrite = "ENABLED"
	DefaultGatewayRouteRewriteDisabled DefaultGatewayRouteRewrite = "DISABLED"
)

// GatewayRouteHostnameMatch matches the request's host; set exactly one member.
type GatewayRouteHostnameMatch struct {
	// Exact is the whole host name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Exact *string `json:"exact,omitempty"`
	// Suffix is the end of the host name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Suffix *string `json:"suffix,omitempty"`
}

// GatewayRouteHostnameRewrite says which host name the service sees.
type GatewayRouteHostnameRewrite struct {
	// DefaultTargetHostname is ENABLED to send the service's name (the default), DISABLED to keep the client's.
	// +optional
	DefaultTargetHostname *DefaultGatewayRouteRewrite `json:"defaultTargetHostname,omitempty"`
}

// GatewayRoutePrefixRewrite says what takes the place of the matched prefix; set one member.
type GatewayRoutePrefixRewrite struct {
	// DefaultPrefix is ENABLED to put / in its place (the default), DISABLED to keep it.
	// +optional
	DefaultPrefix *DefaultGatewayRouteRewrite `json:"defaultPrefix,omitempty"`
	// Value to put in its place, beginning and ending with a slash.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Value *string `json:"value,omitempty"`
}

// GatewayRoutePathRewrite replaces the whole path.
type GatewayRoutePathRewrite struct {
	// Exact is the new path.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	// +optional
	Exact *string `json:"exact,omitempty"`
}

// HTTPGatewayRouteRewrite changes a request before it goes on; prefix and path exclude each other.
type HTTPGatewayRouteRewrite struct {
	// Hostname that the service sees.
	// +optional
	Hostname *GatewayRouteHostnameRewrite `json:"hostname,omitempty"`
	// Prefix that takes the place of the matched one.
	// +optional
	Prefix *GatewayRoutePrefixRewrite `json:"prefix,omitempty"`
	// Path that takes the place of the whole path.
	// +optional
	Path *GatewayRoutePathRewrite `json:"path,omitempty"`
}

// HTTPGatewayRouteAction says where a request goes.
type HTTPGatewayRouteAction struct {
	// Target of the route.
	Target GatewayRouteTarget `json:"target"`
	// Rewrite of the request. Without it the matched prefix becomes / and the host becomes the service's name.
	// +optional
	Rewrite *HTTPGatewayRouteRewrite `json:"rewrite,omitempty"`
}

// HTTPGatewayRouteMatch is what a request must fulfil; at least one of prefix, path and hostname.
type HTTPGatewayRouteMatch struct {
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
	// Hostname of the request.
	// +optional
	Hostname *GatewayRouteHostnameMatch `json:"hostname,omitempty"`
	// Port of the gateway's listener, 1 to 65535; all when absent.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Port *int64 `json:"port,omitempty"`
}

// HTTPGatewayRoute routes HTTP or HTTP/2 requests.
type HTTPGatewayRoute struct {
	// Match says which requests take the route.
	Match HTTPGatewayRouteMatch `json:"match"`
	// Action says where they go.
	Action HTTPGatewayRouteAction `json:"action"`
}

// GRPCGatewayRouteRewrite changes a call before it goes on.
type GRPCGatewayRouteRewrite struct {
	// Hostname that the service sees.
	// +optional
	Hostname *GatewayRouteHostnameRewrite `json:"hostname,omitempty"`
}

// GRPCGatewayRouteAction says where a call goes.
type GRPCGatewayRouteAction struct {
	// Target of the route.
	Target GatewayRouteTarget `json:"target"`
	// Rewrite of the call. Without it the host becomes the service's name.
	// +optional
	Rewrite *GRPCGatewayRouteRewrite `json:"rewrite,omitempty"`
}

// GRPCGatewayRouteMatch is what a call must fulfil; at least one of serviceName and hostname.
type GRPCGatewayRouteMatch struct {
	// ServiceName is the full name of the gRPC service.
	// +optional
	ServiceName *string `json:"serviceName,omitempty"`
	// Hostname of the call.
	// +optional
	Hostname *GatewayRouteHostnameMatch `json:"hostname,omitempty"`
	// Metadata that the call must carry.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=10
	// +optional
	Metadata []GRPCRouteMetadata `json:"metadata,omitempty"`
	// Port of the gateway's listener, 1 to 65535; all when absent.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Port *int64 `json:"port,omitempty"`
}

// GRPCGatewayRoute routes gRPC calls.
type GRPCGatewayRoute struct {
	// Match says which calls take the route.
	Match GRPCGatewayRouteMatch `json:"match"`
	// Action says where they go.
	Action GRPCGatewayRouteAction `json:"action"`
}

// GatewayRouteSpec is the desired state of a GatewayRoute; set exactly one of the three protocols' members.
type GatewayRouteSpec struct {
	// AWSName is the name of the route in the App Mesh API; <name>_<namespace> when absent. It does not change.
	// +optional
	AWSName *string `json:"awsName,omitempty"`
	// Priority among the gateway's routes, 0 (first) to 1000 (last, the default).
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	Priority *int64 `json:"priority,omitempty"`
	// GRPCRoute routes gRPC calls.
	// +optional
	GRPCRoute *GRPCGatewayRoute `json:"grpcRoute,omitempty"`
	// HTTPRoute routes HTTP requests.
	// +optional
	HTTPRoute *HTTPGatewayRoute `json:"httpRoute,omitempty"`
	// HTTP2Route routes HTTP/2 requests.
	// +optional
	HTTP2Route *HTTPGatewayRoute `json:"http2Route,omitempty"`
	// VirtualGatewayRef names the gateway that serves the route; filled in by admission.
	// +optional
	VirtualGatewayRef *VirtualGatewayReference `json:"virtualGatewayRef,omitempty"`
	// MeshRef names the mesh of the route; filled in by admission.
	// +optional
	MeshRef *MeshReference `json:"meshRef,omitempty"`
}

// GatewayRouteStatus is the observed state of a GatewayRoute.
type GatewayRouteStatus struct {
	// GatewayRouteARN is the ARN of the route.
	// +optional
	GatewayRouteARN *string `json:"gatewayRouteARN,omitempty"`
	// Conditions of the route.
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []Condition `json:"conditions,omitempty"`
	// ObservedGeneration is the generation of the object that the status speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}

// GatewayRoute leads traffic from a gateway to a service.
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories={all,appmesh}
// +kubebuilder:printcolumn:name="ARN",type="string",JSONPath=".status.gatewayRouteARN",description="The ARN of the gateway route"
// +kubebuilder:printcolumn:name="AGE",type="date",JSONPath=".metadata.creationTimestamp"
type GatewayRoute struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec is the desired state.
	// +optional
	Spec GatewayRouteSpec `json:"spec,omitempty"`
	// Status is the observed state.
	// +optional
	Status GatewayRouteStatus `json:"status,omitempty"`
}

// GatewayRouteList is a list of GatewayRoutes.
// +kubebuilder:object:root=true
type GatewayRouteList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	// Items of the list.
	Items []GatewayRoute `json:"items"`
}
