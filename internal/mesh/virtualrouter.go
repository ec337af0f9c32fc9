// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

// VirtualRouter spreads requests over nodes by its routes. Source: App Mesh API, VirtualRouterData.
type VirtualRouter struct {
	Meta
	Spec VirtualRouterSpec
}

// VirtualRouterSpec is the part of a router that its owner decides.
type VirtualRouterSpec struct {
	Listeners []VirtualRouterListener `json:"listeners,omitempty"`
}

// VirtualRouterListener is a port on which clients call the router's virtual services.
type VirtualRouterListener struct {
	PortMapping PortMapping `json:"portMapping"`
}
