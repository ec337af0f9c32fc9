// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import "time"

// Object is anything that the model holds under a Key. Objects are immutable once they are in a store.
type Object interface {
	// Key is the object's identity.
	Key() Key
	// From says where the object was written.
	From() Source
}

// Source says where an object was written: the custom resource or manifest that it comes from. An object of the API that was
// made from part of a custom resource (a route, an implicit router) names that resource.
type Source struct {
	// APIVersion and Kind are those of the custom resource or Kubernetes object.
	APIVersion string
	Kind       string
	// Namespace is empty for cluster-scoped kinds.
	Namespace string
	Name      string
	// File and Line (from 1; 0 unknown) are set for manifests on disk.
	File string
	Line int
}

// Identity is s without the place in a file: what stays the same when the object moves to another line.
func (s Source) Identity() Source { s.File, s.Line = "", 0; return s }

// String writes "VirtualNode prod/dj", or "Mesh dj-app" for cluster-scoped kinds.
func (s Source) String() string {
	if s.Namespace == "" {
		return s.Kind + " " + s.Name
	}
	return s.Kind + " " + s.Namespace + "/" + s.Name
}

// Meta is what all objects of the App Mesh API have in common.
type Meta struct {
	// MeshName is the App Mesh name of the mesh that the object belongs to (of a Mesh: its own).
	MeshName string
	// Name is the App Mesh name.
	Name string
	// Owner is the account that owns the mesh where it is not the control plane's own; 12 digits or empty.
	Owner string
	// UID, Version and the times are what the API's metadata shows; zero where the source has none.
	UID       string
	Version   int64
	CreatedAt time.Time
	UpdatedAt time.Time
	// Source is where the object was written.
	Source Source
}

// From says where the object was written.
func (m Meta) From() Source { return m.Source }

// Key is the mesh's identity.
func (m *Mesh) Key() Key { return MeshKey(m.Name) }

// Key is the node's identity.
func (n *VirtualNode) Key() Key { return NodeKey(n.MeshName, n.Name) }

// Key is the virtual service's identity.
func (s *VirtualService) Key() Key { return VirtualServiceKey(s.MeshName, s.Name) }

// Key is the router's identity.
func (r *VirtualRouter) Key() Key { return RouterKey(r.MeshName, r.Name) }

// Key is the route's identity.
func (r *Route) Key() Key { return RouteKey(r.MeshName, r.RouterName, r.Name) }

// Key is the gateway's identity.
func (g *VirtualGateway) Key() Key { return GatewayKey(g.MeshName, g.Name) }

// Key is the gateway route's identity.
func (r *GatewayRoute) Key() Key { return GatewayRouteKey(r.MeshName, r.GatewayName, r.Name) }

// Key is the Service's identity.
func (s *Service) Key() Key { return ServiceKey(s.Namespace, s.Name) }

// From says where the Service was written.
func (s *Service) From() Source { return s.Source }

// Key is the slice's identity.
func (s *EndpointSlice) Key() Key { return EndpointSliceKey(s.Namespace, s.ServiceName, s.Name) }

// From says where the slice was written.
func (s *EndpointSlice) From() Source { return s.Source }

// Key is the workload's identity.
func (w *Workload) Key() Key { return WorkloadKey(w.MeshName, w.NodeName, w.Namespace, w.Name) }

// From says where the pod was written.
func (w *Workload) From() Source { return w.Source }

var (
	_ Object = (*Mesh)(nil)
	_ Object = (*VirtualNode)(nil)
	_ Object = (*VirtualService)(nil)
	_ Object = (*VirtualRouter)(nil)
	_ Object = (*Route)(nil)
	_ Object = (*VirtualGateway)(nil)
	_ Object = (*GatewayRoute)(nil)
	_ Object = (*Service)(nil)
	_ Object = (*EndpointSlice)(nil)
	_ Object = (*Workload)(nil)
)
