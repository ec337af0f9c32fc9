// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package mesh is the one model of a service mesh, in the App Mesh API's own shapes and names, with its references, validation, findings, and what one proxy may know of it (View, EndpointSet).
// Every other package may call it; it imports the standard library alone.
package mesh

// Mesh is the boundary in which names are unique and references resolve. Source: App Mesh API, MeshData.
type Mesh struct {
	Meta
	Spec MeshSpec
}

// MeshSpec is the part of a mesh that its owner decides. Source: App Mesh API, MeshSpec.
//
//nolint:revive // the API calls it so
type MeshSpec struct {
	// EgressFilter says what happens to traffic for destinations outside the mesh; nil is DROP_ALL.
	EgressFilter *EgressFilter `json:"egressFilter,omitempty"`
	// ServiceDiscovery holds the mesh-wide choice of IP family; a virtual node's own choice wins.
	ServiceDiscovery *MeshServiceDiscovery `json:"serviceDiscovery,omitempty"`
}

// EgressFilter says whether proxies pass traffic to destinations that the mesh does not model.
type EgressFilter struct {
	Type EgressFilterType `json:"type"`
}

// EgressFilterType is the choice of an EgressFilter.
type EgressFilterType string

// The egress filter types of the App Mesh API.
const (
	EgressAllowAll EgressFilterType = "ALLOW_ALL"
	EgressDropAll  EgressFilterType = "DROP_ALL"
)

// MeshServiceDiscovery is the mesh-wide part of service discovery.
//
//nolint:revive // the API calls it so
type MeshServiceDiscovery struct {
	IPPreference IPPreference `json:"ipPreference,omitempty"`
}

// IPPreference chooses between IPv4 and IPv6 endpoints; empty means no preference.
type IPPreference string

// The IP preferences of the App Mesh API.
const (
	IPv4Only      IPPreference = "IPv4_ONLY"
	IPv6Only      IPPreference = "IPv6_ONLY"
	IPv4Preferred IPPreference = "IPv4_PREFERRED"
	IPv6Preferred IPPreference = "IPv6_PREFERRED"
)
