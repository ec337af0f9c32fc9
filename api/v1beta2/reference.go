// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

import "k8s.io/apimachinery/pkg/types"

// MeshReference names the Mesh to which an object belongs. Admission fills it in; it does not change afterwards.
type MeshReference struct {
	// Name of the Mesh object.
	Name string `json:"name"`
	// UID of the Mesh object. When it is absent the name alone decides.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// VirtualServiceReference points to a VirtualService object.
type VirtualServiceReference struct {
	// Namespace of the VirtualService; the referring object's own when absent.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// Name of the VirtualService.
	Name string `json:"name"`
}

// VirtualNodeReference points to a VirtualNode object.
type VirtualNodeReference struct {
	// Namespace of the VirtualNode; the referring object's own when absent.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// Name of the VirtualNode.
	Name string `json:"name"`
}

// VirtualRouterReference points to a VirtualRouter object.
type VirtualRouterReference struct {
	// Namespace of the VirtualRouter; the referring object's own when absent.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// Name of the VirtualRouter.
	Name string `json:"name"`
}

// VirtualGatewayReference points to the VirtualGateway that serves a GatewayRoute. Admission fills it in.
type VirtualGatewayReference struct {
	// Namespace of the VirtualGateway; the referring object's own when absent.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// Name of the VirtualGateway.
	Name string `json:"name"`
	// UID of the VirtualGateway. When it is absent the name alone decides.
	// +optional
	UID types.UID `json:"uid,omitempty"`
}

// BackendGroupReference points to a BackendGroup object.
type BackendGroupReference struct {
	// Namespace of the group; the VirtualNode's own when absent.
	// +optional
	Namespace *string `json:"namespace,omitempty"`
	// Name of the group; "*" stands for every VirtualService of the namespace and needs no BackendGroup.
	Name string `json:"name"`
}
