// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

// DurationUnit is the unit of a Duration.
// +kubebuilder:validation:Enum=s;ms
type DurationUnit string

// The units of a Duration: seconds and milliseconds.
const (
	DurationUnitS  DurationUnit = "s"
	DurationUnitMS DurationUnit = "ms"
)

// Duration is a span of time.
type Duration struct {
	// Unit is s (seconds) or ms (milliseconds).
	Unit DurationUnit `json:"unit"`
	// Value counts the units; 0 or more.
	// +kubebuilder:validation:Minimum=0
	Value int64 `json:"value"`
}

// HTTPTimeout limits HTTP and HTTP/2 traffic.
type HTTPTimeout struct {
	// PerRequest limits one request from its first byte to the end of the response.
	// +optional
	PerRequest *Duration `json:"perRequest,omitempty"`
	// Idle limits the time in which nothing is sent either way.
	// +optional
	Idle *Duration `json:"idle,omitempty"`
}

// GRPCTimeout limits gRPC traffic.
type GRPCTimeout struct {
	// PerRequest limits one call from its first byte to the end of the response.
	// +optional
	PerRequest *Duration `json:"perRequest,omitempty"`
	// Idle limits the time in which nothing is sent either way.
	// +optional
	Idle *Duration `json:"idle,omitempty"`
}

// TCPTimeout limits TCP connections.
type TCPTimeout struct {
	// Idle limits the time in which nothing is sent either way.
	// +optional
	Idle *Duration `json:"idle,omitempty"`
}
