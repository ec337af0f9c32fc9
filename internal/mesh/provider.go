// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"cmp"
	"fmt"
	"slices"
)

// providerPorts are the ports on which clients call service, sorted, with the routes of each. There are none where the provider is missing: its ports are not known then.
func (b *builder) providerPorts(service *VirtualService) []ServicePortView {
	p := service.Spec.Provider
	var ports []ServicePortView
	switch {
	case p == nil || p.VirtualNode == nil && p.VirtualRouter == nil:
		b.report(Finding{
			Severity: SeverityWarning, Reason: ReasonNoTraffic, Object: service.Source, Field: "spec.provider",
			Message: fmt.Sprintf("virtual service %q has no provider: nothing answers", service.Name),
			Mend:    "name a virtual node or a virtual router as provider",
		})
	case p.VirtualNode != nil && p.VirtualRouter != nil:
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonInvalid, Object: service.Source, Field: "spec.provider",
			Message: fmt.Sprintf("virtual service %q has both a virtual node and a virtual router as provider: nothing answers", service.Name),
			Mend:    "name one of the two",
		})
	case p.VirtualNode != nil:
		ports = b.nodePorts(service, p.VirtualNode.VirtualNodeName)
	default:
		ports = b.routerPorts(service, p.VirtualRouter.VirtualRouterName)
	}
	slices.SortFunc(ports, func(x, y ServicePortView) int { return cmp.Compare(x.Port, y.Port) })
	return ports
}

// nodePorts are the listeners of the node that answers everything for service.
func (b *builder) nodePorts(service *VirtualService, name string) []ServicePortView {
	n, ok := b.virtualNode(name)
	if !ok {
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonRefNotFound, Object: service.Source, Field: "spec.provider.virtualNode.virtualNodeName", Value: name,
			Message: fmt.Sprintf("virtual service %q is provided by virtual node %q, which does not exist in mesh %q", service.Name, name, b.mesh),
			Mend:    "create the virtual node, or name one that exists",
		})
		return nil
	}
	indexes := n.listenerIndexes()
	if len(indexes) == 0 {
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonRefNotFound, Object: service.Source, Field: "spec.provider.virtualNode.virtualNodeName", Value: name,
			Message: fmt.Sprintf("virtual service %q is provided by virtual node %q, which has no listener", service.Name, name),
			Mend:    "give the virtual node a listener",
		})
	}
	ports := make([]ServicePortView, 0, len(indexes))
	for _, i := range indexes {
		li := &n.Spec.Listeners[i]
		port := ServicePortView{Port: li.PortMapping.Port, Protocol: li.PortMapping.Protocol}
		if b.plaintext(n, i) {
			port.Routes = []RouteView{b.nodeRoute(service, n, li)}
		}
		ports = append(ports, port)
	}
	return ports
}

// nodeRoute takes every request of a listener's port to the listener. The listener's timeouts hold for it, since the user has no route on which to set others.
func (b *builder) nodeRoute(service *VirtualService, n *VirtualNode, li *Listener) RouteView {
	r := RouteView{Route: service.Key(), Targets: []TargetView{{Node: n.Name, Port: li.PortMapping.Port, Weight: 100}}}
	switch li.PortMapping.Protocol {
	case ProtocolTCP:
		r.TCP, r.TCPIdle = true, li.tcpIdle()
		return r
	case ProtocolGRPC:
		r.GRPC = new(GRPCRouteMatch{})
	default:
		r.HTTP = new(HTTPRouteMatch{Prefix: new("/")})
	}
	r.DefaultTimeout = b.requestTimeout
	if t := li.httpTimeout(); t != nil {
		if t.PerRequest != nil {
			r.DefaultTimeout = t.PerRequest
		}
		if t.Idle != nil {
			r.Timeout = new(HTTPTimeout{Idle: t.Idle})
		}
	}
	return r
}

// routerPorts are the listeners of the router that spreads the requests of service.
func (b *builder) routerPorts(service *VirtualService, name string) []ServicePortView {
	router, ok := find[*VirtualRouter](&b.lookup, RouterKey(b.mesh, name))
	if !ok {
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonRefNotFound, Object: service.Source, Field: "spec.provider.virtualRouter.virtualRouterName", Value: name,
			Message: fmt.Sprintf("virtual service %q is provided by virtual router %q, which does not exist in mesh %q", service.Name, name, b.mesh),
			Mend:    "create the virtual router, or name one that exists",
		})
		return nil
	}
	return b.routerRoutes(router)
}

// routerRoutes are the router's listeners with the routes of each.
func (b *builder) routerRoutes(router *VirtualRouter) []ServicePortView {
	ports := b.routerListeners(router)
	routes := b.children(RouteKey(b.mesh, router.Name, ""))
	ranked := make([]rankedRoute, 0, len(routes))
	for _, o := range routes {
		if route, ok := o.(*Route); ok {
			if r, ok := b.routeView(route, router, ports); ok {
				ranked = append(ranked, r)
			}
		}
	}
	slices.SortFunc(ranked, rankedRoute.compare)
	for i := range ports {
		for j := range ranked {
			if ranked[j].port == i {
				ports[i].Routes = append(ports[i].Routes, ranked[j].RouteView)
			}
		}
		if len(ports[i].Routes) == 0 {
			b.report(Finding{
				Severity: SeverityWarning, Reason: ReasonNoTraffic, Object: router.Source, Field: "spec.listeners", Value: fmt.Sprint(ports[i].Port),
				Message: fmt.Sprintf("virtual router %q has no route for its port %d: requests are refused", router.Name, ports[i].Port),
				Mend:    "add a route, or remove the listener",
			})
		}
	}
	return ports
}

// routerListeners are the router's usable listeners in the user's order, without routes.
func (b *builder) routerListeners(router *VirtualRouter) []ServicePortView {
	ports := make([]ServicePortView, 0, len(router.Spec.Listeners))
	for i, li := range router.Spec.Listeners {
		taken := slices.ContainsFunc(ports, func(p ServicePortView) bool { return p.Port == li.PortMapping.Port })
		if !taken && li.PortMapping.usable() {
			ports = append(ports, ServicePortView{Port: li.PortMapping.Port, Protocol: li.PortMapping.Protocol})
			continue
		}
		b.report(unusableListener("virtual router", router.Name, router.Source, i, li.PortMapping))
	}
	if len(ports) == 0 {
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonInvalid, Object: router.Source, Field: "spec.listeners",
			Message: fmt.Sprintf("virtual router %q has no listener, so that no port leads to its routes", router.Name),
			Mend:    "add a listener with the port that clients call",
		})
	}
	return ports
}
