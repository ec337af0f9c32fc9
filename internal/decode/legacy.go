// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"fmt"
	"strings"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// implicitRouter makes the router and routes that a v1beta1 service carries inside. They live in the model alone.
func (b *builder) implicitRouter(o *v1beta2.VirtualService) []mesh.Object {
	meta := b.in.meta(b.self)
	meta.Name, meta.UID = b.self.router.Name, ""
	router := &mesh.VirtualRouter{Meta: meta}
	objects := []mesh.Object{router}
	names := map[string]int{}
	var targets []ID
	for i := range o.Spec.Routes {
		route := &o.Spec.Routes[i]
		name := route.Name
		if name == "" {
			// The old controller asked for a name; one that is made up keeps the route, and does not change with others.
			name = fmt.Sprintf("route-%d", i)
		}
		if !b.uniqueRoute(names, name, i) {
			continue
		}
		spec, to := b.legacyRoute(fmt.Sprintf("spec.routes[%d]", i), route)
		targets = append(targets, to...)
		objects = append(objects, b.newRoute(router.Name, name, i, spec))
	}
	router.Spec.Listeners = b.legacyListeners(o, targets)
	return objects
}

// legacyListeners are the listeners of an implicit router: those that are written, else the first listener of the first
// target that has one.
func (b *builder) legacyListeners(o *v1beta2.VirtualService, targets []ID) []mesh.VirtualRouterListener {
	var list []mesh.VirtualRouterListener
	if o.Spec.VirtualRouter != nil {
		for _, l := range o.Spec.VirtualRouter.Listeners {
			list = append(list, mesh.VirtualRouterListener{PortMapping: mesh.PortMapping{
				Port:     int32Of(l.PortMapping.Port),
				Protocol: mesh.Protocol(l.PortMapping.Protocol),
			}})
		}
	}
	if len(list) > 0 {
		return list
	}
	for _, target := range targets {
		if port := read[*mesh.PortMapping](b.reader, cellKey{stage: stageListener, id: target}); port != nil {
			return []mesh.VirtualRouterListener{{PortMapping: *port}}
		}
	}
	return nil
}

// firstListener is the port of a node's first listener, nil where it has none.
func firstListener(r *reader, id ID) *mesh.PortMapping {
	node, in := get[*v1beta2.VirtualNode](r, id)
	if in == nil || len(node.Spec.Listeners) == 0 {
		return nil
	}
	return new(portMapping(node.Spec.Listeners[0].PortMapping))
}

// legacyNode finds the node that a v1beta1 target names: a VirtualNode of the own namespace, <name>.<namespace>, or an
// App Mesh name, whichever comes first. It returns the App Mesh name and the object.
func (b *builder) legacyNode(field, name string) (string, ID, bool) {
	own := ID{Kind: kindVirtualNode, Namespace: b.in.id.Namespace, Name: name}
	candidates := []ID{own}
	if dot := strings.LastIndexByte(name, '.'); dot > 0 {
		candidates = append(candidates, ID{Kind: kindVirtualNode, Namespace: name[dot+1:], Name: name[:dot]})
	}
	candidates = append(candidates, holder(b.reader, mesh.NodeKey(b.self.mesh, name)))
	var hits []ID
	for _, id := range candidates {
		if id == (ID{}) || len(hits) > 0 && hits[0] == id {
			continue
		}
		if target := identityOf(b.reader, id); target != nil && target.mesh == b.self.mesh {
			hits = append(hits, id)
		}
	}
	if len(hits) == 0 {
		b.add(problem{
			reason: mesh.ReasonRefNotFound,
			field:  field,
			value:  name,
			message: fmt.Sprintf("%q names no VirtualNode of mesh %q: neither one of namespace %q, nor <name>.<namespace>, nor an App Mesh name",
				name, b.self.mesh, b.in.id.Namespace),
			mend: "create the VirtualNode, or name one that exists",
		})
		return "", ID{}, false
	}
	if len(hits) > 1 {
		b.add(problem{
			severity: mesh.SeverityWarning,
			reason:   mesh.ReasonRefAmbiguous,
			field:    field,
			value:    name,
			message: fmt.Sprintf("%q may mean the VirtualNode %s/%s or %s/%s; the first is taken",
				name, hits[0].Namespace, hits[0].Name, hits[1].Namespace, hits[1].Name),
			mend: "write <name>.<namespace>, or rename one of the nodes",
		})
	}
	resolved, ok := b.resolveRef(field, hits[0])
	return resolved, hits[0], ok
}

func (b *builder) legacyAction(field string, action v1beta2.LegacyRouteAction) (mesh.RouteAction, []ID) {
	var out mesh.RouteAction
	var targets []ID
	field += ".action.weightedTargets"
	for i, target := range action.WeightedTargets {
		name, id, ok := b.legacyNode(fmt.Sprintf("%s[%d].virtualNodeName", field, i), target.VirtualNodeName)
		if !ok {
			continue
		}
		b.keep(field, i)
		targets = append(targets, id)
		out.WeightedTargets = append(out.WeightedTargets, mesh.WeightedTarget{VirtualNode: name, Weight: int32Of(target.Weight)})
	}
	if len(action.WeightedTargets) > 0 && len(out.WeightedTargets) == 0 {
		b.empty(field)
	}
	return out, targets
}

func (b *builder) legacyRoute(field string, route *v1beta2.LegacyRoute) (mesh.RouteSpec, []ID) {
	spec := mesh.RouteSpec{Priority: int32Ptr(route.Priority)}
	var targets []ID
	if route.HTTP != nil {
		spec.HTTPRoute, targets = b.legacyHTTPRoute(field+".http", route.HTTP)
	}
	if route.HTTP2 != nil {
		var more []ID
		spec.HTTP2Route, more = b.legacyHTTPRoute(field+".http2", route.HTTP2)
		targets = append(targets, more...)
	}
	if grpc := route.GRPC; grpc != nil {
		action, more := b.legacyAction(field+".grpc", grpc.Action)
		targets = append(targets, more...)
		spec.GRPCRoute = &mesh.GRPCRoute{
			Match: mesh.GRPCRouteMatch{
				ServiceName: valueOf(grpc.Match.ServiceName),
				MethodName:  valueOf(grpc.Match.MethodName),
				Metadata:    metadata(grpc.Match.Metadata),
			},
			Action: action,
		}
		if grpc.RetryPolicy != nil {
			spec.GRPCRoute.RetryPolicy = legacyRetry(&grpc.RetryPolicy.LegacyHTTPRetryPolicy)
			spec.GRPCRoute.RetryPolicy.GRPCRetryEvents = texts(grpc.RetryPolicy.GRPCRetryEvents)
		}
	}
	if route.TCP != nil {
		action, more := b.legacyAction(field+".tcp", route.TCP.Action)
		targets = append(targets, more...)
		spec.TCPRoute = &mesh.TCPRoute{Action: action}
	}
	return spec, targets
}

func (b *builder) legacyHTTPRoute(field string, route *v1beta2.LegacyHTTPRoute) (*mesh.HTTPRoute, []ID) {
	action, targets := b.legacyAction(field, route.Action)
	return &mesh.HTTPRoute{
		Match: mesh.HTTPRouteMatch{
			Prefix:  new(route.Match.Prefix),
			Method:  valueOf(route.Match.Method),
			Scheme:  valueOf(route.Match.Scheme),
			Headers: headers(route.Match.Headers),
		},
		Action:      action,
		RetryPolicy: legacyRetry(route.RetryPolicy),
	}, targets
}

func legacyRetry(policy *v1beta2.LegacyHTTPRetryPolicy) *mesh.RetryPolicy {
	if policy == nil {
		return nil
	}
	out := &mesh.RetryPolicy{
		MaxRetries:      valueOf(policy.MaxRetries),
		HTTPRetryEvents: texts(policy.HTTPRetryEvents),
		TCPRetryEvents:  texts(policy.TCPRetryEvents),
	}
	if policy.PerRetryTimeoutMillis != nil {
		out.PerRetryTimeout = &mesh.Duration{Unit: mesh.Milliseconds, Value: *policy.PerRetryTimeoutMillis}
	}
	return out
}
