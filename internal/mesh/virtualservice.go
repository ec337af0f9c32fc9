// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

// VirtualService is a name that clients call, and what answers. Source: App Mesh API, VirtualServiceData.
type VirtualService struct {
	Meta
	Spec VirtualServiceSpec
}

// VirtualServiceSpec is the part of a virtual service that its owner decides.
type VirtualServiceSpec struct {
	// Provider is what answers; nil means nothing does yet.
	Provider *VirtualServiceProvider `json:"provider,omitempty"`
}

// VirtualServiceProvider is a union of which exactly one member is set.
type VirtualServiceProvider struct {
	VirtualNode   *VirtualNodeServiceProvider   `json:"virtualNode,omitempty"`
	VirtualRouter *VirtualRouterServiceProvider `json:"virtualRouter,omitempty"`
}

// VirtualNodeServiceProvider names the node that answers everything.
type VirtualNodeServiceProvider struct {
	VirtualNodeName string `json:"virtualNodeName"`
}

// VirtualRouterServiceProvider names the router that spreads requests.
type VirtualRouterServiceProvider struct {
	VirtualRouterName string `json:"virtualRouterName"`
}
