// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"fmt"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// builder decodes one custom resource that has its mesh and its name.
type builder struct {
	findings

	reader *reader
	in     *input
	self   *identity
	// kept are the entries that were decoded of lists whose entries may be left out.
	kept map[string][]int
	// emptied are the lists of which no entry is left.
	emptied map[string]struct{}
}

// decodeContent turns an object into what it means to the model.
func decodeContent(r *reader, id ID) *content {
	in := read[*input](r, cellKey{stage: stageInput, id: id})
	if in == nil {
		return nil
	}
	switch id.Kind {
	case kindService:
		return decodeService(in)
	case kindEndpointSlice:
		return decodeEndpointSlice(in)
	case kindBackendGroup:
		return nil
	}
	self := identityOf(r, id)
	if self == nil || self.key == (mesh.Key{}) {
		return nil
	}
	b := &builder{findings: findings{source: in.source}, reader: r, in: in, self: self}
	if owner := holder(r, self.key); owner != id {
		b.conflict(b.nameField(), self.key, owner)
		return &content{findings: b.list}
	}
	objects := b.build()
	b.validate(objects)
	return &content{objects: objects, findings: b.list}
}

func (b *builder) build() []mesh.Object {
	switch o := b.in.object.(type) {
	case *v1beta2.Mesh:
		return b.mesh(o)
	case *v1beta2.VirtualNode:
		return b.virtualNode(o)
	case *v1beta2.VirtualService:
		return b.virtualService(o)
	case *v1beta2.VirtualRouter:
		return b.virtualRouter(o)
	case *v1beta2.VirtualGateway:
		return b.virtualGateway(o)
	case *v1beta2.GatewayRoute:
		return b.gatewayRoute(o)
	}
	return nil
}

// nameField is where the App Mesh name of the object was written.
func (b *builder) nameField() string {
	var name *string
	switch o := b.in.object.(type) {
	case *v1beta2.Mesh:
		name = o.Spec.AWSName
	case *v1beta2.VirtualNode:
		name = o.Spec.AWSName
	case *v1beta2.VirtualService:
		name = o.Spec.AWSName
	case *v1beta2.VirtualRouter:
		name = o.Spec.AWSName
	case *v1beta2.VirtualGateway:
		name = o.Spec.AWSName
	case *v1beta2.GatewayRoute:
		name = o.Spec.AWSName
	}
	if b.self.legacy || valueOf(name) == "" {
		return "metadata.name"
	}
	return "spec.awsName"
}

func (b *builder) mesh(o *v1beta2.Mesh) []mesh.Object {
	out := &mesh.Mesh{Meta: b.in.meta(b.self)}
	if filter := o.Spec.EgressFilter; filter != nil {
		out.Spec.EgressFilter = &mesh.EgressFilter{Type: mesh.EgressFilterType(filter.Type)}
	}
	if discovery := o.Spec.MeshServiceDiscovery; discovery != nil {
		out.Spec.ServiceDiscovery = &mesh.MeshServiceDiscovery{IPPreference: mesh.IPPreference(valueOf(discovery.IPPreference))}
	}
	return []mesh.Object{out}
}

func (b *builder) virtualNode(o *v1beta2.VirtualNode) []mesh.Object {
	out := &mesh.VirtualNode{
		Meta:        b.in.meta(b.self),
		SelectsPods: o.Spec.PodSelector != nil || b.self.legacy,
		Spec: mesh.VirtualNodeSpec{
			ServiceDiscovery: serviceDiscovery(o.Spec.ServiceDiscovery),
			BackendDefaults:  backendDefaults(o.Spec.BackendDefaults),
			Logging:          logging(o.Spec.Logging),
		},
	}
	for i := range o.Spec.Listeners {
		out.Spec.Listeners = append(out.Spec.Listeners, listener(&o.Spec.Listeners[i]))
	}
	for i := range o.Spec.Backends {
		backend := &o.Spec.Backends[i].VirtualService
		field := fmt.Sprintf("spec.backends[%d].virtualService", i)
		name, ok := b.backendName(field, backend)
		if !ok {
			continue
		}
		b.keep("spec.backends", i)
		out.Spec.Backends = append(out.Spec.Backends, mesh.Backend{VirtualService: &mesh.VirtualServiceBackend{
			VirtualServiceName: name,
			ClientPolicy:       clientPolicy(backend.ClientPolicy),
		}})
	}
	b.addGroups(o, out)
	b.selector("spec.podSelector", o.Spec.PodSelector)
	return []mesh.Object{out}
}

func (b *builder) backendName(field string, backend *v1beta2.VirtualServiceBackend) (string, bool) {
	if backend.VirtualServiceName != nil && backend.VirtualServiceRef == nil && backend.VirtualServiceARN == nil {
		key := mesh.VirtualServiceKey(b.self.mesh, *backend.VirtualServiceName)
		return b.named(field+".virtualServiceName", key)
	}
	return b.virtualServiceName(field, backend.VirtualServiceRef, backend.VirtualServiceARN)
}

func (b *builder) virtualService(o *v1beta2.VirtualService) []mesh.Object {
	out := &mesh.VirtualService{Meta: b.in.meta(b.self)}
	if provider := o.Spec.Provider; provider != nil {
		if o.Spec.VirtualRouter != nil || len(o.Spec.Routes) > 0 {
			b.add(problem{
				reason:  mesh.ReasonInvalid,
				field:   "spec.provider",
				message: "provider stands beside routes or virtualRouter, which say the same in v1beta1's way, so this object is not in force",
				mend:    "keep provider and move the routes to a VirtualRouter, or remove provider",
			})
			return nil
		}
		out.Spec.Provider = b.provider(provider)
		return []mesh.Object{out}
	}
	if b.self.router == (mesh.Key{}) {
		return []mesh.Object{out}
	}
	if owner := holder(b.reader, b.self.router); owner != b.in.id {
		b.conflict("spec.virtualRouter.name", b.self.router, owner)
		return []mesh.Object{out}
	}
	out.Spec.Provider = &mesh.VirtualServiceProvider{
		VirtualRouter: &mesh.VirtualRouterServiceProvider{VirtualRouterName: b.self.router.Name},
	}
	return append([]mesh.Object{out}, b.implicitRouter(o)...)
}

func (b *builder) provider(p *v1beta2.VirtualServiceProvider) *mesh.VirtualServiceProvider {
	out := &mesh.VirtualServiceProvider{}
	if node := p.VirtualNode; node != nil {
		if name, ok := b.virtualNodeName("spec.provider.virtualNode", node.VirtualNodeRef, node.VirtualNodeARN); ok {
			out.VirtualNode = &mesh.VirtualNodeServiceProvider{VirtualNodeName: name}
		}
	}
	if router := p.VirtualRouter; router != nil {
		if name, ok := b.virtualRouterName("spec.provider.virtualRouter", router.VirtualRouterRef, router.VirtualRouterARN); ok {
			out.VirtualRouter = &mesh.VirtualRouterServiceProvider{VirtualRouterName: name}
		}
	}
	if p.VirtualNode != nil && p.VirtualRouter != nil {
		b.add(problem{
			reason:  mesh.ReasonInvalid,
			field:   "spec.provider",
			message: "provider names both a virtual node and a virtual router, so nothing answers for this service",
			mend:    "keep one of virtualNode and virtualRouter",
		})
		return nil
	}
	if out.VirtualNode == nil && out.VirtualRouter == nil {
		return nil
	}
	return out
}

func (b *builder) virtualRouter(o *v1beta2.VirtualRouter) []mesh.Object {
	router := &mesh.VirtualRouter{Meta: b.in.meta(b.self)}
	for _, l := range o.Spec.Listeners {
		router.Spec.Listeners = append(router.Spec.Listeners, mesh.VirtualRouterListener{PortMapping: portMapping(l.PortMapping)})
	}
	objects := make([]mesh.Object, 0, len(o.Spec.Routes)+1)
	objects = append(objects, router)
	names := map[string]int{}
	for i := range o.Spec.Routes {
		route := &o.Spec.Routes[i]
		if !b.uniqueRoute(names, route.Name, i) {
			continue
		}
		objects = append(objects, b.newRoute(router.Name, route.Name, i, b.routeSpec(fmt.Sprintf("spec.routes[%d]", i), route)))
	}
	return objects
}

// uniqueRoute notes a route's name and says whether it is the first of its router.
func (b *builder) uniqueRoute(names map[string]int, name string, index int) bool {
	first, had := names[name]
	if !had {
		names[name] = index
		return true
	}
	b.add(problem{
		reason:  mesh.ReasonDuplicate,
		field:   fmt.Sprintf("spec.routes[%d].name", index),
		value:   name,
		message: fmt.Sprintf("the route name %q is that of spec.routes[%d] too, and this route is left out", name, first),
		mend:    "give each route of the router a name of its own",
	})
	return false
}

func (b *builder) newRoute(router, name string, position int, spec mesh.RouteSpec) *mesh.Route {
	meta := b.in.meta(b.self)
	meta.Name, meta.UID = name, ""
	return &mesh.Route{Meta: meta, RouterName: router, Position: position, Spec: spec}
}

func (b *builder) virtualGateway(o *v1beta2.VirtualGateway) []mesh.Object {
	out := &mesh.VirtualGateway{
		Meta:        b.in.meta(b.self),
		SelectsPods: o.Spec.PodSelector != nil,
		Spec: mesh.VirtualGatewaySpec{
			BackendDefaults: backendDefaults(o.Spec.BackendDefaults),
			Logging:         logging(o.Spec.Logging),
		},
	}
	for i := range o.Spec.Listeners {
		out.Spec.Listeners = append(out.Spec.Listeners, gatewayListener(&o.Spec.Listeners[i]))
	}
	b.selector("spec.podSelector", o.Spec.PodSelector)
	return []mesh.Object{out}
}

func (b *builder) gatewayRoute(o *v1beta2.GatewayRoute) []mesh.Object {
	at := identityOf(b.reader, b.self.gateway)
	if at == nil {
		return nil
	}
	if owner := holder(b.reader, at.key); owner != b.self.gateway {
		b.add(problem{
			reason: mesh.ReasonConflicted,
			field:  "spec.virtualGatewayRef",
			value:  b.self.gateway.Name,
			message: fmt.Sprintf("the VirtualGateway %s/%s that takes this route is not in force: its name %q belongs to %s/%s",
				b.self.gateway.Namespace, b.self.gateway.Name, at.key.Name, owner.Namespace, owner.Name),
			mend: "choose another awsName for one of the gateways",
		})
		return nil
	}
	return []mesh.Object{&mesh.GatewayRoute{Meta: b.in.meta(b.self), GatewayName: at.key.Name, Spec: b.gatewayRouteSpec(&o.Spec)}}
}
