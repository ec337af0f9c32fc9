// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"cmp"
	"fmt"
	"slices"
)

// ViewOf computes what the proxies of a virtual node may know from r. It also returns the keys that it has read, sorted, each once: those of objects that do not exist are among
// them, and Key.List of a kind whose objects it has listed, so that the View can differ only after a change of an object whose key, or Key.List, is there.
//
// The View is nil where the node or its mesh does not exist, so that proxies keep what they have, and for a virtual gateway, which is not supported yet. What is wrong or missing
// elsewhere is a finding, and the rest goes on.
func ViewOf(r Reader, proxy Key, profile Profile) (*View, []Key, []Finding) {
	b := newBuilder(r, proxy.Mesh)
	view := b.view(proxy, profile)
	return view, b.keys(), SortFindings(b.findings)
}

// builder makes one View.
type builder struct {
	lookup
	mesh string
	// nodes are those that were read so far; nil stands for one that does not exist.
	nodes map[string]*VirtualNode
	// requestTimeout is the one that all routes without their own share.
	requestTimeout *Duration
}

func newBuilder(r Reader, mesh string) *builder {
	return &builder{
		lookup: newLookup(r, 128), mesh: mesh, nodes: make(map[string]*VirtualNode, 32),
		requestTimeout: &Duration{Value: int64(DefaultRequestTimeout.Seconds()), Unit: Seconds},
	}
}

func (b *builder) view(proxy Key, profile Profile) *View {
	if proxy.Kind == KindVirtualGateway {
		b.gateway(proxy)
		return nil
	}
	node, ok := b.virtualNode(proxy.Name)
	if !ok || proxy.Kind != KindVirtualNode {
		return nil
	}
	mesh, ok := find[*Mesh](&b.lookup, MeshKey(b.mesh))
	if !ok {
		b.report(Finding{
			Severity: SeverityError, Reason: ReasonRefNotFound, Object: node.Source, Field: "spec.meshName", Value: b.mesh,
			Message: fmt.Sprintf("virtual node %q belongs to mesh %q, which does not exist: its proxies keep what they have", node.Name, b.mesh),
			Mend:    "create the mesh",
		})
		return nil
	}
	v := &View{
		Proxy: proxy, Profile: profile, Egress: mesh.egress(),
		IPPreference: prefer(node.ownPreference(), mesh.preference()),
		Listeners:    b.ownListeners(node),
		Logging:      node.Spec.Logging,
	}
	backends := b.backends(node)
	v.Services = make([]ServiceView, 0, len(backends))
	for _, be := range backends {
		if service, ok := b.backendView(node, be); ok {
			v.Services = append(v.Services, service)
		}
	}
	slices.SortFunc(v.Services, func(x, y ServiceView) int { return cmp.Compare(x.Name, y.Name) })
	b.portConflicts(node, backends, v)
	v.Nodes = b.nodeViews(v.Services, mesh.preference())
	return v
}

// gateway says of a gateway that exists, and of its routes, that they get no configuration yet.
func (b *builder) gateway(key Key) {
	g, ok := find[*VirtualGateway](&b.lookup, key)
	if !ok {
		return
	}
	b.report(Finding{
		Severity: SeverityError, Reason: ReasonNotYetSupported, Object: g.Source, Field: "spec.listeners",
		Message: fmt.Sprintf("virtual gateway %q gets no configuration: virtual gateways are not supported yet", g.Name),
		Mend:    "call the virtual services from a virtual node of the mesh",
	})
	for _, o := range b.children(GatewayRouteKey(b.mesh, key.Name, "")) {
		if route, ok := o.(*GatewayRoute); ok {
			b.unsupportedRoute(route)
		}
	}
}

// egress is the mesh's filter; anything but ALLOW_ALL is the API's default, which lets nothing out.
func (m *Mesh) egress() EgressFilterType {
	if m.Spec.EgressFilter != nil && m.Spec.EgressFilter.Type == EgressAllowAll {
		return EgressAllowAll
	}
	return EgressDropAll
}

// virtualNode returns a node of the mesh.
func (b *builder) virtualNode(name string) (*VirtualNode, bool) {
	if n, ok := b.nodes[name]; ok {
		return n, n != nil
	}
	n, ok := find[*VirtualNode](&b.lookup, NodeKey(b.mesh, name))
	b.nodes[name] = n
	return n, ok
}

// nodeViews are the nodes that the services' routes lead to, each with the listeners that are used.
func (b *builder) nodeViews(services []ServiceView, fallback IPPreference) []NodeView {
	used := make([]TargetView, 0, 2*len(services))
	for i := range services {
		for j := range services[i].Ports {
			for k := range services[i].Ports[j].Routes {
				used = append(used, services[i].Ports[j].Routes[k].Targets...)
			}
		}
	}
	slices.SortFunc(used, func(x, y TargetView) int { return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Port, y.Port)) })
	used = slices.CompactFunc(used, func(x, y TargetView) bool { return x.Node == y.Node && x.Port == y.Port })
	views := make([]NodeView, 0, len(used))
	for _, t := range used {
		n := b.nodes[t.Node]
		if len(views) == 0 || views[len(views)-1].Name != t.Node {
			views = append(views, NodeView{Name: t.Node, Discovery: b.discover(n, fallback).DiscoveryView})
		}
		view := &views[len(views)-1]
		view.Listeners = append(view.Listeners, n.Spec.Listeners[n.listenerIndex(t.Port)].callerView())
	}
	return views
}
