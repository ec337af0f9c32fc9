// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

// PortProtocol is the protocol that a listener speaks.
// +kubebuilder:validation:Enum=grpc;http;http2;tcp
type PortProtocol string

// The protocols of listeners and health checks.
const (
	PortProtocolGRPC  PortProtocol = "grpc"
	PortProtocolHTTP  PortProtocol = "http"
	PortProtocolHTTP2 PortProtocol = "http2"
	PortProtocolTCP   PortProtocol = "tcp"
)

// PortMapping is the port and the protocol of a listener.
type PortMapping struct {
	// Port, 1 to 65535.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	Port int64 `json:"port"`
	// Protocol that is spoken on the port.
	Protocol PortProtocol `json:"protocol"`
}
