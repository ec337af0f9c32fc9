// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// ConditionType names one aspect of an object's state.
type ConditionType string

// The conditions of the kinds. The <Kind>Active ones are what the API has always had; Accepted, ResolvedRefs and
// Programmed say why an object is not active, each with a reason and a message.
const (
	MeshActive           ConditionType = "MeshActive"
	VirtualNodeActive    ConditionType = "VirtualNodeActive"
	VirtualServiceActive ConditionType = "VirtualServiceActive"
	VirtualRouterActive  ConditionType = "VirtualRouterActive"
	VirtualGatewayActive ConditionType = "VirtualGatewayActive"
	GatewayRouteActive   ConditionType = "GatewayRouteActive"
	// Accepted is False when the object itself is at fault or its name belongs to another object.
	Accepted ConditionType = "Accepted"
	// ResolvedRefs is False when something that the object refers to is missing.
	ResolvedRefs ConditionType = "ResolvedRefs"
	// Programmed is True while no connected proxy rejects what came from the object.
	Programmed ConditionType = "Programmed"
)

// Condition is one observed aspect of an object.
type Condition struct {
	// Type of the condition, such as MeshActive.
	Type ConditionType `json:"type"`
	// Status is True, False or Unknown.
	Status metav1.ConditionStatus `json:"status"`
	// LastTransitionTime is when the status last changed.
	// +optional
	LastTransitionTime *metav1.Time `json:"lastTransitionTime,omitempty"`
	// Reason is one CamelCase word for the state, for programs.
	// +optional
	Reason *string `json:"reason,omitempty"`
	// Message explains the state, for people.
	// +optional
	Message *string `json:"message,omitempty"`
	// ObservedGeneration is the generation of the object that the condition speaks of.
	// +optional
	ObservedGeneration *int64 `json:"observedGeneration,omitempty"`
}
