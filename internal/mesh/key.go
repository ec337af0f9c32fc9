// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import "strings"

// Kind names a kind of object in the model.
type Kind string

// The kinds of the App Mesh API, and those that say where workloads are.
const (
	KindMesh           Kind = "Mesh"
	KindVirtualNode    Kind = "VirtualNode"
	KindVirtualService Kind = "VirtualService"
	KindVirtualRouter  Kind = "VirtualRouter"
	KindRoute          Kind = "Route"
	KindVirtualGateway Kind = "VirtualGateway"
	KindGatewayRoute   Kind = "GatewayRoute"

	KindService       Kind = "Service"
	KindEndpointSlice Kind = "EndpointSlice"
	KindWorkload      Kind = "Workload"
)

// Key is the identity of an object in the model. It is comparable and orders by its fields.
type Key struct {
	Kind Kind `json:"kind,omitempty"`
	// Mesh is the App Mesh name of the mesh; empty for Service and EndpointSlice. A Mesh has its own name here and in Name.
	Mesh string `json:"mesh,omitempty"`
	// Parent is the virtual router of a Route, the virtual gateway of a GatewayRoute, the virtual node of a Workload,
	// the namespace of a Service, and "namespace/service" of an EndpointSlice; empty for other kinds.
	Parent string `json:"parent,omitempty"`
	// Name is the App Mesh name; for a Workload "namespace/pod".
	Name string `json:"name,omitempty"`
}

// Compare orders keys by kind, mesh, parent and name.
func (k Key) Compare(o Key) int {
	// One comparison a field: sorting what a View has read is a good part of making it.
	if c := strings.Compare(string(k.Kind), string(o.Kind)); c != 0 {
		return c
	}
	if c := strings.Compare(k.Mesh, o.Mesh); c != 0 {
		return c
	}
	if c := strings.Compare(k.Parent, o.Parent); c != 0 {
		return c
	}
	return strings.Compare(k.Name, o.Name)
}

// String writes a key for logs: "VirtualNode mesh/name".
func (k Key) String() string {
	parts := make([]string, 0, 3)
	for _, s := range []string{k.Mesh, k.Parent, k.Name} {
		if s != "" && (k.Kind != KindMesh || len(parts) == 0) {
			parts = append(parts, s)
		}
	}
	return string(k.Kind) + " " + strings.Join(parts, "/")
}

// List is the key that stands for the children of k's kind under k's parent: a View that has read all routes of a router depends on List of any of them.
func (k Key) List() Key { k.Name = ""; return k }

// MeshKey is the key of a mesh.
//
//nolint:revive // it is named as its siblings are: NodeKey, RouterKey
func MeshKey(name string) Key { return Key{Kind: KindMesh, Mesh: name, Name: name} }

// NodeKey is the key of a virtual node.
func NodeKey(mesh, name string) Key { return Key{Kind: KindVirtualNode, Mesh: mesh, Name: name} }

// VirtualServiceKey is the key of a virtual service.
func VirtualServiceKey(mesh, name string) Key {
	return Key{Kind: KindVirtualService, Mesh: mesh, Name: name}
}

// RouterKey is the key of a virtual router.
func RouterKey(mesh, name string) Key { return Key{Kind: KindVirtualRouter, Mesh: mesh, Name: name} }

// RouteKey is the key of a route of a virtual router.
func RouteKey(mesh, router, name string) Key {
	return Key{Kind: KindRoute, Mesh: mesh, Parent: router, Name: name}
}

// GatewayKey is the key of a virtual gateway.
func GatewayKey(mesh, name string) Key { return Key{Kind: KindVirtualGateway, Mesh: mesh, Name: name} }

// GatewayRouteKey is the key of a route of a virtual gateway.
func GatewayRouteKey(mesh, gateway, name string) Key {
	return Key{Kind: KindGatewayRoute, Mesh: mesh, Parent: gateway, Name: name}
}

// ServiceKey is the key of a Kubernetes Service.
func ServiceKey(namespace, name string) Key {
	return Key{Kind: KindService, Parent: namespace, Name: name}
}

// EndpointSliceKey is the key of one EndpointSlice of a Kubernetes Service.
func EndpointSliceKey(namespace, service, slice string) Key {
	return Key{Kind: KindEndpointSlice, Parent: namespace + "/" + service, Name: slice}
}

// WorkloadKey is the key of a pod as a member of a virtual node.
func WorkloadKey(mesh, node, namespace, pod string) Key {
	return Key{Kind: KindWorkload, Mesh: mesh, Parent: node, Name: namespace + "/" + pod}
}
