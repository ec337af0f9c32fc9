// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LowestPriority is the priority of a route that names none. Source: App Mesh controller, GatewayRoute; the API says nothing of routes.
const LowestPriority = 1000

// routeForm is the one kind of route that a RouteSpec holds, in a form that is the same for all kinds.
type routeForm struct {
	// member is the name of the kind in the API: "httpRoute".
	member   string
	protocol Protocol
	// listener is the port that the route asks for.
	listener *int32
	action   *RouteAction
	rankedRoute
}

// rankedRoute is a route with what decides its place among the routes of a port.
type rankedRoute struct {
	RouteView
	// port is the place of the router's port among its listeners.
	port     int
	priority int32
	// path is 0 for an exact path, 1 for a regular expression, 2 for a prefix, of which the longest goes first.
	path     int
	length   int
	matchers int
	position int
}

// compare puts the route first that takes precedence: by priority, kind and length of its path, number of further conditions, the user's order, and name.
func (r rankedRoute) compare(o rankedRoute) int {
	return cmp.Or(
		cmp.Compare(r.priority, o.priority), cmp.Compare(r.path, o.path), cmp.Compare(o.length, r.length),
		cmp.Compare(o.matchers, r.matchers), cmp.Compare(r.position, o.position), cmp.Compare(r.Route.Name, o.Route.Name),
	)
}

// forms are the kinds that the route holds; a sound route holds one.
func (r *Route) forms() []routeForm {
	var list []routeForm
	if h := r.Spec.HTTPRoute; h != nil {
		list = append(list, h.form("httpRoute", ProtocolHTTP))
	}
	if h := r.Spec.HTTP2Route; h != nil {
		list = append(list, h.form("http2Route", ProtocolHTTP2))
	}
	if g := r.Spec.GRPCRoute; g != nil {
		list = append(list, g.form())
	}
	if t := r.Spec.TCPRoute; t != nil {
		list = append(list, t.form())
	}
	return list
}

func (h *HTTPRoute) form(member string, protocol Protocol) routeForm {
	f := routeForm{member: member, protocol: protocol, listener: h.Match.Port, action: &h.Action}
	f.HTTP, f.Timeout, f.Retry = &h.Match, h.Timeout, h.RetryPolicy
	f.path = 2
	switch p := h.Match.Path; {
	case p != nil && p.Exact != nil:
		f.path = 0
	case p != nil && p.Regex != nil:
		f.path = 1
	case h.Match.Prefix != nil:
		f.length = len(*h.Match.Prefix)
	}
	f.matchers = len(h.Match.Headers) + len(h.Match.QueryParameters)
	if h.Match.Method != "" {
		f.matchers++
	}
	if h.Match.Scheme != "" {
		f.matchers++
	}
	return f
}

func (g *GRPCRoute) form() routeForm {
	f := routeForm{member: "grpcRoute", protocol: ProtocolGRPC, listener: g.Match.Port, action: &g.Action}
	f.GRPC, f.Timeout, f.Retry = &g.Match, g.Timeout, g.RetryPolicy
	f.path, f.length, f.matchers = 2, len(g.Match.ServiceName), len(g.Match.Metadata)
	if g.Match.ServiceName != "" && g.Match.MethodName != "" {
		f.path, f.length = 0, 0
	}
	return f
}

func (t *TCPRoute) form() routeForm {
	f := routeForm{member: "tcpRoute", protocol: ProtocolTCP, action: &t.Action}
	f.TCP = true
	if t.Match != nil {
		f.listener = t.Match.Port
	}
	if t.Timeout != nil {
		f.TCPIdle = t.Timeout.Idle
	}
	return f
}

// field is the path of a field of the route in the object where the user wrote it: in the list of routes of a router or virtual service, or alone.
func (r *Route) field(rest string) string {
	if k := Kind(r.Source.Kind); k == KindVirtualRouter || k == KindVirtualService {
		return "spec.routes[" + strconv.Itoa(r.Position) + "]." + rest
	}
	return "spec." + rest
}

// routeView resolves a route of router, which has ports; false for a route that must be left out.
func (b *builder) routeView(route *Route, router *VirtualRouter, ports []ServicePortView) (rankedRoute, bool) {
	forms := route.forms()
	if len(forms) != 1 {
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonInvalid, Object: route.Source, Field: strings.TrimSuffix(route.field(""), "."),
			Message: fmt.Sprintf("route %q of virtual router %q is left out: it holds %d kinds of route", route.Name, router.Name, len(forms)),
			Mend:    "set exactly one of httpRoute, http2Route, grpcRoute and tcpRoute",
		})
		return rankedRoute{}, false
	}
	form := &forms[0]
	if faults := matchFaults(route, form); len(faults) > 0 {
		b.findings = append(b.findings, faults...)
		return rankedRoute{}, false
	}
	port, ok := b.routePort(route, router, form, ports)
	if !ok {
		return rankedRoute{}, false
	}
	if want := ports[port].Protocol; want != form.protocol {
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonProtocolMismatch, Object: route.Source, Field: route.field(form.member), Value: string(form.protocol),
			Message: fmt.Sprintf("route %q is left out: it is a route for %s, and port %d of virtual router %q speaks %s", route.Name, form.protocol, ports[port].Port, router.Name, want),
			Mend:    "make the kind of the route and the protocol of the router's listener the same",
		})
		return rankedRoute{}, false
	}
	form.Route, form.port = route.Key(), port
	if !form.TCP {
		form.DefaultTimeout = b.requestTimeout
	}
	form.position, form.priority = route.Position, LowestPriority
	if route.Spec.Priority != nil {
		form.priority = *route.Spec.Priority
	}
	form.Targets = b.routeTargets(route, form, ports[port].Port)
	return form.rankedRoute, true
}

// routePort says which of the router's ports the route serves.
func (b *builder) routePort(route *Route, router *VirtualRouter, form *routeForm, ports []ServicePortView) (int, bool) {
	field := func() string { return route.field(form.member + ".match.port") }
	if form.listener != nil {
		i := slices.IndexFunc(ports, func(p ServicePortView) bool { return p.Port == *form.listener })
		if i < 0 {
			b.report(Finding{
				Severity: SeverityError, Reason: ReasonRefNotFound, Object: route.Source, Field: field(), Value: strconv.Itoa(int(*form.listener)),
				Message: fmt.Sprintf("route %q is left out: virtual router %q has no listener on port %d", route.Name, router.Name, *form.listener),
				Mend:    "name the port of a listener of the router",
			})
		}
		return i, i >= 0
	}
	if len(ports) > 1 {
		b.report(Finding{
			Severity: SeverityWarning, Reason: ReasonRefAmbiguous, Object: route.Source, Field: field(),
			Message: fmt.Sprintf("route %q does not say which of the %d ports of virtual router %q it serves; it serves the first, %d", route.Name, len(ports), router.Name, ports[0].Port),
			Mend:    "name the port",
		})
	}
	return 0, len(ports) > 0
}

// routeTargets are the targets of a route that exist and can take its requests.
func (b *builder) routeTargets(route *Route, form *routeForm, routerPort int32) []TargetView {
	targets := make([]TargetView, 0, len(form.action.WeightedTargets))
	total := int64(0)
	for i, t := range form.action.WeightedTargets {
		field := func(rest string) string { return route.field(form.member + at(".action.weightedTargets", i) + rest) }
		if t.Weight < 0 {
			b.report(Finding{
				Severity: SeverityError, Reason: ReasonInvalid, Object: route.Source, Field: field(".weight"), Value: strconv.Itoa(int(t.Weight)),
				Message: fmt.Sprintf("route %q gives virtual node %q a weight below 0; the target is left out", route.Name, t.VirtualNode),
				Mend:    "use a weight from 0 to 100",
			})
			continue
		}
		if port, ok := b.target(route, form.protocol, t, field, routerPort); ok {
			targets = append(targets, TargetView{Node: t.VirtualNode, Port: port, Weight: t.Weight})
			total += int64(t.Weight)
		}
	}
	if total == 0 {
		b.report(Finding{
			Severity: SeverityWarning, Reason: ReasonNoTraffic, Object: route.Source, Field: route.field(form.member + ".action.weightedTargets"),
			Message: fmt.Sprintf("route %q has no target with a weight above 0: what it matches is refused", route.Name),
			Mend:    "give a target that exists a weight above 0",
		})
	}
	return targets
}

// target resolves one target to a port of its node; false for one that cannot take the route's requests.
func (b *builder) target(route *Route, protocol Protocol, t WeightedTarget, field func(rest string) string, routerPort int32) (int32, bool) {
	node, ok := b.virtualNode(t.VirtualNode)
	if !ok {
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonRefNotFound, Object: route.Source, Field: field(".virtualNode"), Value: t.VirtualNode,
			Message: fmt.Sprintf("route %q sends requests to virtual node %q, which does not exist in mesh %q", route.Name, t.VirtualNode, b.mesh),
			Mend:    "create the virtual node, or name one that exists",
		})
		return 0, false
	}
	index, ok := b.targetListener(route, node, t, field, routerPort)
	if !ok {
		return 0, false
	}
	m := node.Spec.Listeners[index].PortMapping
	if m.Protocol == protocol {
		return m.Port, b.plaintext(node, index)
	}
	f := Finding{
		Severity: SeverityWarning, Reason: ReasonProtocolMismatch, Object: route.Source, Field: field(""), Value: t.VirtualNode,
		Message: fmt.Sprintf("route %q is for %s, and port %d of its target %q speaks %s", route.Name, protocol, m.Port, t.VirtualNode, m.Protocol),
		Mend:    "make the protocols of the route and of the node's listener the same",
	}
	tcp := m.Protocol == ProtocolTCP || protocol == ProtocolTCP
	if tcp {
		f.Severity = SeverityError
		f.Message += "; the target is left out"
	}
	b.report(f)
	return m.Port, !tcp && b.plaintext(node, index)
}

// targetListener picks the listener of node that t means.
func (b *builder) targetListener(route *Route, node *VirtualNode, t WeightedTarget, field func(rest string) string, routerPort int32) (int, bool) {
	if t.Port != nil {
		if i := node.listenerIndex(*t.Port); i >= 0 {
			return i, true
		}
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonRefNotFound, Object: route.Source, Field: field(".port"), Value: strconv.Itoa(int(*t.Port)),
			Message: fmt.Sprintf("route %q sends requests to port %d of virtual node %q, which has no listener there", route.Name, *t.Port, t.VirtualNode),
			Mend:    "name the port of a listener of the node",
		})
		return 0, false
	}
	indexes := node.listenerIndexes()
	switch len(indexes) {
	case 0:
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonRefNotFound, Object: route.Source, Field: field(".virtualNode"), Value: t.VirtualNode,
			Message: fmt.Sprintf("route %q sends requests to virtual node %q, which has no listener", route.Name, t.VirtualNode),
			Mend:    "give the virtual node a listener",
		})
		return 0, false
	case 1:
		return indexes[0], true
	}
	chosen := indexes[0]
	if i := node.listenerIndex(routerPort); i >= 0 {
		chosen = i
	}
	b.report(Finding{
		Severity: SeverityWarning, Reason: ReasonRefAmbiguous, Object: route.Source, Field: field(".port"),
		Message: fmt.Sprintf("route %q does not say which of the %d ports of virtual node %q it means; it takes %d", route.Name, len(indexes), t.VirtualNode, node.Spec.Listeners[chosen].PortMapping.Port),
		Mend:    "name the port",
	})
	return chosen, true
}
