// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

// VirtualGateway lets requests from outside into the mesh. Source: App Mesh API, VirtualGatewayData.
type VirtualGateway struct {
	Meta
	Spec VirtualGatewaySpec
	// SelectsPods says that the gateway names its own pods.
	SelectsPods bool
}

// VirtualGatewaySpec is the part of a gateway that its owner decides. Source: App Mesh API, VirtualGatewaySpec.
type VirtualGatewaySpec struct {
	Listeners       []VirtualGatewayListener `json:"listeners"`
	BackendDefaults *BackendDefaults         `json:"backendDefaults,omitempty"`
	Logging         *Logging                 `json:"logging,omitempty"`
}

// VirtualGatewayListener is a port on which a gateway takes requests.
type VirtualGatewayListener struct {
	PortMapping    PortMapping        `json:"portMapping"`
	HealthCheck    *HealthCheckPolicy `json:"healthCheck,omitempty"`
	TLS            *ListenerTLS       `json:"tls,omitempty"`
	ConnectionPool *ConnectionPool    `json:"connectionPool,omitempty"`
}
