// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

// HTTPRetryPolicyEvent is an HTTP answer on which a request is sent again.
// +kubebuilder:validation:Enum=server-error;gateway-error;client-error;stream-error
type HTTPRetryPolicyEvent string

// TCPRetryPolicyEvent is a connection failure on which a request is sent again.
// +kubebuilder:validation:Enum=connection-error
type TCPRetryPolicyEvent string

// GRPCRetryPolicyEvent is a gRPC status on which a call is made again.
// +kubebuilder:validation:Enum=cancelled;deadline-exceeded;internal;resource-exhausted;unavailable
type GRPCRetryPolicyEvent string

// HTTPRetryPolicy says when a request is sent again.
type HTTPRetryPolicy struct {
	// HTTPRetryEvents are the HTTP answers on which to retry.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=25
	// +optional
	HTTPRetryEvents []HTTPRetryPolicyEvent `json:"httpRetryEvents,omitempty"`
	// TCPRetryEvents are the connection failures on which to retry.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +optional
	TCPRetryEvents []TCPRetryPolicyEvent `json:"tcpRetryEvents,omitempty"`
	// MaxRetries after the first attempt; 0 or more.
	// +kubebuilder:validation:Minimum=0
	MaxRetries int64 `json:"maxRetries"`
	// PerRetryTimeout limits each attempt.
	PerRetryTimeout Duration `json:"perRetryTimeout"`
}

// GRPCRetryPolicy says when a call is made again.
type GRPCRetryPolicy struct {
	// GRPCRetryEvents are the gRPC statuses on which to retry.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=5
	// +optional
	GRPCRetryEvents []GRPCRetryPolicyEvent `json:"grpcRetryEvents,omitempty"`
	// HTTPRetryEvents are the HTTP answers on which to retry.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=25
	// +optional
	HTTPRetryEvents []HTTPRetryPolicyEvent `json:"httpRetryEvents,omitempty"`
	// TCPRetryEvents are the connection failures on which to retry.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1
	// +optional
	TCPRetryEvents []TCPRetryPolicyEvent `json:"tcpRetryEvents,omitempty"`
	// MaxRetries after the first attempt; 0 or more.
	// +kubebuilder:validation:Minimum=0
	MaxRetries int64 `json:"maxRetries"`
	// PerRetryTimeout limits each attempt.
	PerRetryTimeout Duration `json:"perRetryTimeout"`
}
