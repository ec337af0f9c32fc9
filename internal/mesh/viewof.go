// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import "fmt"

// ViewOf computes what the proxies of a virtual node may know from r. It also returns the keys that it has read, sorted, each once: those of objects that do not exist are among
// them, and Key.List of a kind whose objects it has listed, so that the View can differ only after a change of an object whose key, or Key.List, is there.
//
// The View is nil where the node or its mesh does not exist, so that proxies keep what they have, and for a virtual gateway, which is not supported yet. What is wrong or missing
// elsewhere is a finding, and the rest goes on.
func ViewOf(r Reader, proxy Key, profile Profile) (*View, []Key, []Finding) {
	b := newBuilder(r, proxy.Mesh, 128)
	view := b.view(proxy, profile, b.offer)
	return view, b.keys(), SortFindings(b.findings)
}

// ViewWith is ViewOf for a caller that keeps Offers. It asks for that of each virtual service that the node has as backend, by name; what an Offer was made from is not among the keys that
// are returned, nor what was found there among the findings.
func ViewWith(r Reader, proxy Key, profile Profile, offer func(service string) *Offer) (*View, []Key, []Finding) {
	b := newBuilder(r, proxy.Mesh, 2)
	view := b.view(proxy, profile, offer)
	return view, b.keys(), SortFindings(b.findings)
}

// builder makes one View or Offer.
type builder struct {
	lookup
	mesh string
	// nodes are those that were read so far; nil stands for one that does not exist.
	nodes map[string]*VirtualNode
	// requestTimeout is the one that all routes without their own share.
	requestTimeout *Duration
}

// newBuilder returns a builder with room for as many keys.
func newBuilder(r Reader, mesh string, keys int) *builder {
	return &builder{
		lookup: newLookup(r, keys), mesh: mesh,
		requestTimeout: &Duration{Value: int64(DefaultRequestTimeout.Seconds()), Unit: Seconds},
	}
}

func (b *builder) view(proxy Key, profile Profile, offer func(service string) *Offer) *View {
	if proxy.Kind == KindVirtualGateway {
		b.gateway(proxy)
		return nil
	}
	node, ok := find[*VirtualNode](&b.lookup, NodeKey(b.mesh, proxy.Name))
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
	offers := make([]*Offer, 0, len(backends))
	for i := range backends {
		be := &backends[i]
		o := offer(be.service)
		if service, ok := b.backendView(node, be, o); ok {
			v.Services = append(v.Services, service)
			offers = append(offers, o)
		}
	}
	b.portConflicts(node, backends, v)
	v.Nodes = viewNodes(v.Services, offers)
	return v
}

// viewNodes are the nodes that the services' routes lead to, each with the listeners that are used. offers are those of the services and perhaps of more, in the same order.
func viewNodes(services []ServiceView, offers []*Offer) []NodeView {
	all := make([]NodeView, 0, 2*len(services))
	next := 0
	for i := range services {
		for offers[next].service.Name != services[i].Name {
			next++
		}
		all = append(all, offers[next].nodesFor(services[i].Ports)...)
	}
	return mergeNodes(all)
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
	if b.nodes == nil {
		b.nodes = map[string]*VirtualNode{}
	}
	b.nodes[name] = n
	return n, ok
}
