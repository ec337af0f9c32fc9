// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import "fmt"

// Check says what is wrong with one object among the others of r: references that lead nowhere, protocols that differ, routes that take no traffic, what is not supported yet.
// It needs no proxy that uses the object; ViewOf finds the same, and what concerns one proxy alone, for the objects that a proxy uses. What Validate finds is not repeated.
func Check(r Reader, key Key) []Finding {
	b := newBuilder(r, key.Mesh, 128)
	o := r.Get(key)
	if o == nil {
		return nil
	}
	if _, ok := arnSegments(key); ok && key.Kind != KindMesh && key.Kind != KindVirtualNode {
		b.membership(o)
	}
	switch o := o.(type) {
	case *VirtualNode:
		b.view(key, Profile{}, b.offer)
		if len(o.listenerIndexes()) > 0 {
			mesh, _ := find[*Mesh](&b.lookup, MeshKey(key.Mesh))
			b.discover(o, mesh.preference())
		}
	case *VirtualService:
		b.providerPorts(o)
	case *VirtualRouter:
		b.routerRoutes(o)
	case *Route:
		b.parent(o.Source, RouterKey(key.Mesh, o.RouterName), "virtualRouterName")
	case *VirtualGateway:
		b.view(key, Profile{}, b.offer)
	case *GatewayRoute:
		b.gatewayRoute(o)
	}
	return SortFindings(b.findings)
}

// membership reports an object whose mesh does not exist.
func (b *builder) membership(o Object) {
	b.parent(o.From(), MeshKey(o.Key().Mesh), "meshName")
}

// parent reports an object whose mesh, router or gateway does not exist.
func (b *builder) parent(source Source, key Key, field string) {
	if _, ok := find[Object](&b.lookup, key); ok {
		return
	}
	b.report(Finding{
		Severity: SeverityError, Reason: ReasonRefNotFound, Object: source, Field: field, Value: key.Name,
		Message: fmt.Sprintf("%s belongs to %s, which does not exist", source, key),
		Mend:    "create it, or name one that exists",
	})
}

func (b *builder) gatewayRoute(r *GatewayRoute) {
	b.parent(r.Source, GatewayKey(b.mesh, r.GatewayName), "virtualGatewayName")
	for member, target := range r.targets() {
		service := target.VirtualService.VirtualServiceName
		if _, ok := find[*VirtualService](&b.lookup, VirtualServiceKey(b.mesh, service)); !ok {
			b.report(Finding{
				Severity: SeverityError, Reason: ReasonRefNotFound, Object: r.Source, Field: "spec." + member + ".action.target.virtualService.virtualServiceName", Value: service,
				Message: fmt.Sprintf("gateway route %q sends requests to virtual service %q, which does not exist in mesh %q", r.Name, service, b.mesh),
				Mend:    "create the virtual service, or name one that exists",
			})
		}
	}
	b.unsupportedRoute(r)
}

// unsupportedRoute says of a gateway route that it has no effect yet.
func (b *builder) unsupportedRoute(r *GatewayRoute) {
	b.report(Finding{
		Severity: SeverityError, Reason: ReasonNotYetSupported, Object: r.Source, Field: "spec",
		Message: fmt.Sprintf("gateway route %q has no effect: virtual gateways are not supported yet", r.Name),
		Mend:    "call the virtual service from a virtual node of the mesh",
	})
}

// targets are the targets of the route's kinds, by the name of the kind in the API.
func (r *GatewayRoute) targets() map[string]*GatewayRouteTarget {
	targets := make(map[string]*GatewayRouteTarget, 1)
	if h := r.Spec.HTTPRoute; h != nil {
		targets["httpRoute"] = &h.Action.Target
	}
	if h := r.Spec.HTTP2Route; h != nil {
		targets["http2Route"] = &h.Action.Target
	}
	if g := r.Spec.GRPCRoute; g != nil {
		targets["grpcRoute"] = &g.Action.Target
	}
	return targets
}
