// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import "net/netip"

// View is everything, endpoints apart, that one group of proxies may know. It holds values alone, in a fixed order, so that Views can be compared
// and translation needs no other input. It shares parts with other Views, so nothing in it may be changed.
type View struct {
	// Proxy is the virtual node or virtual gateway that the group belongs to.
	Proxy   Key     `json:"proxy"`
	Profile Profile `json:"profile"`
	// Egress is the mesh's egress filter, never empty.
	Egress EgressFilterType `json:"egress,omitempty"`
	// IPPreference is the one that holds for the proxy's own listeners (the node's, else the mesh's).
	IPPreference IPPreference `json:"ipPreference,omitempty"`
	// Listeners are the node's own, those that cannot be programmed left out.
	Listeners []Listener `json:"listeners,omitempty"`
	Logging   *Logging   `json:"logging,omitempty"`
	// Services are the virtual services that the proxy may call, sorted by name.
	Services []ServiceView `json:"services,omitempty"`
	// Nodes are the nodes that routes of Services lead to, sorted by name.
	Nodes []NodeView `json:"nodes,omitempty"`
}

// Profile is the few capabilities of a proxy that change its configuration.
type Profile struct {
	// IPv6 says that the proxy's host has IPv6.
	IPv6 bool `json:"ipv6,omitempty"`
	// MetricsExtension says that the proxy asked for App Mesh's metrics extension.
	MetricsExtension bool `json:"metricsExtension,omitempty"`
	// StockImage says that the proxy is AWS's own image, whose agent is not ours.
	StockImage bool `json:"stockImage,omitempty"`
}

// ServiceView is a virtual service as one proxy sees it.
type ServiceView struct {
	// Name is the virtual service's App Mesh name, which clients call as a host.
	Name string `json:"name,omitempty"`
	// Addresses are the ClusterIPs of the Service that the virtual service is named after, sorted; none where it is headless or unknown.
	Addresses []netip.Addr `json:"addresses,omitempty"`
	// Ports are the ports that clients may dial, sorted; each port of a service appears once.
	Ports []ServicePortView `json:"ports,omitempty"`
	// OwnPolicy is set where the backend's client policy differs from the proxy's default, so that its clusters need names of their own.
	OwnPolicy bool `json:"ownPolicy,omitempty"`
	// ClientPolicy is the one that holds: the backend's, else the proxy's default; nil for none.
	ClientPolicy *ClientPolicy `json:"clientPolicy,omitempty"`
}

// ServicePortView is a port of a virtual service.
type ServicePortView struct {
	Port     int32    `json:"port,omitempty"`
	Protocol Protocol `json:"protocol,omitempty"`
	// Routes are in order of precedence: the first that matches takes the request. None means that nothing answers (503).
	Routes []RouteView `json:"routes,omitempty"`
}

// RouteView is a route as one proxy sees it: exactly one of HTTP, GRPC and TCP is set.
type RouteView struct {
	// Route is the route in the model, or the virtual service where a node is its provider.
	Route Key             `json:"route"`
	HTTP  *HTTPRouteMatch `json:"http,omitempty"`
	GRPC  *GRPCRouteMatch `json:"grpc,omitempty"`
	TCP   bool            `json:"tcp,omitempty"`
	// Timeout and TCPIdle are the route's own; nil where it says nothing.
	Timeout *HTTPTimeout `json:"timeout,omitempty"`
	TCPIdle *Duration    `json:"tcpIdle,omitempty"`
	// DefaultTimeout is what holds where Timeout says nothing of PerRequest: 15 s on a route, the listener's own for a node as provider.
	DefaultTimeout *Duration    `json:"defaultTimeout,omitempty"`
	Retry          *RetryPolicy `json:"retry,omitempty"`
	// Targets are those that exist, in the user's order; a weight may be 0. None with a positive weight means 503.
	Targets []TargetView `json:"targets,omitempty"`
}

// TargetView is a listener of a node, and its share of a route's requests.
type TargetView struct {
	Node   string `json:"node,omitempty"`
	Port   int32  `json:"port,omitempty"`
	Weight int32  `json:"weight"`
}

// NodeView is a node that requests can be sent to.
type NodeView struct {
	Name      string             `json:"name,omitempty"`
	Listeners []NodeListenerView `json:"listeners,omitempty"`
	Discovery DiscoveryView      `json:"discovery"`
}

// NodeListenerView is what callers need to know of a node's listener.
type NodeListenerView struct {
	Port             int32              `json:"port,omitempty"`
	Protocol         Protocol           `json:"protocol,omitempty"`
	HealthCheck      *HealthCheckPolicy `json:"healthCheck,omitempty"`
	OutlierDetection *OutlierDetection  `json:"outlierDetection,omitempty"`
	// TLS is the server's mode, empty for none.
	TLS TLSMode `json:"tls,omitempty"`
}

// DiscoveryView says where a node's endpoints come from.
type DiscoveryView struct {
	Type DiscoveryType `json:"type,omitempty"`
	// Hostname is what DNS is asked for, and the host of health checks.
	Hostname     string       `json:"hostname,omitempty"`
	IPPreference IPPreference `json:"ipPreference,omitempty"`
}

// DiscoveryType is a way of finding endpoints.
type DiscoveryType string

// The ways: endpoint sets of the control plane (key EndpointSetKey{Mesh, Node, Port}), or DNS read in one of two ways.
const (
	DiscoveryEndpoints  DiscoveryType = "Endpoints"
	DiscoveryLogicalDNS DiscoveryType = "LogicalDNS"
	DiscoveryStrictDNS  DiscoveryType = "StrictDNS"
)

// EndpointSetKey names the endpoints of one listener of a node.
type EndpointSetKey struct {
	Mesh string `json:"mesh,omitempty"`
	Node string `json:"node,omitempty"`
	// Port and Protocol are the listener's.
	Port     int32    `json:"port,omitempty"`
	Protocol Protocol `json:"protocol,omitempty"`
}

// EndpointSet are the endpoints of one listener of a node: what translation needs to make a load assignment.
type EndpointSet struct {
	Key EndpointSetKey `json:"key"`
	// Endpoints are sorted by zone, address and port, each once.
	Endpoints []SetEndpoint `json:"endpoints,omitempty"`
}

// SetEndpoint is an address that takes requests.
type SetEndpoint struct {
	Address netip.AddrPort `json:"address"`
	// Draining endpoints finish what they have and take nothing new.
	Draining bool   `json:"draining,omitempty"`
	Zone     string `json:"zone,omitempty"`
}
