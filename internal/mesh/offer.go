// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"cmp"
	"net/netip"
	"reflect"
	"slices"
)

// Offer is what a virtual service is to all who may call it: the part of their Views that does not depend on the caller. It is made once for all of them and never changes.
type Offer struct {
	service Key
	// exists says that there is such a virtual service.
	exists bool
	// addresses are the ClusterIPs of the Service that the virtual service is named after, and dialled the ports of that Service; both sorted.
	addresses []netip.Addr
	dialled   []int32
	ports     []ServicePortView
	// nodes are those that the routes of ports lead to, sorted by name.
	nodes []NodeView
}

// OfferOf computes what the virtual service of a key offers, and returns the keys that it has read (see ViewOf). The Offer is never nil: of a service that does not exist it says so.
func OfferOf(r Reader, service Key) (*Offer, []Key, []Finding) {
	b := newBuilder(r, service.Mesh, 16)
	offer := b.offer(service.Name)
	return offer, b.keys(), SortFindings(b.findings)
}

// Since returns last where o does not differ from it, and otherwise o with what has not changed since last shared with it, so that Views tell by its memory that it is the same.
func (o *Offer) Since(last *Offer) *Offer {
	if last == nil {
		return o
	}
	if reflect.DeepEqual(o, last) {
		return last
	}
	next := *o
	if reflect.DeepEqual(o.ports, last.ports) {
		next.ports = last.ports
	}
	if reflect.DeepEqual(o.nodes, last.nodes) {
		next.nodes = last.nodes
	}
	return &next
}

func (b *builder) offer(name string) *Offer {
	o := &Offer{service: VirtualServiceKey(b.mesh, name)}
	service, ok := find[*VirtualService](&b.lookup, o.service)
	if !ok {
		return o
	}
	o.exists = true
	o.ports = b.providerPorts(service)
	if kubernetes := b.namesake(name, service.Source.Namespace); kubernetes != nil {
		o.addresses, o.dialled = kubernetes.addresses(), kubernetes.dialled()
	}
	mesh, _ := find[*Mesh](&b.lookup, MeshKey(b.mesh))
	o.nodes = b.nodeViews(o.ports, mesh.preference())
	return o
}

// nodeViews are the nodes that routes lead to, each with the listeners that are used.
func (b *builder) nodeViews(ports []ServicePortView, fallback IPPreference) []NodeView {
	used := targetsOf(ports)
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

// targetsOf are the targets of all routes of ports, sorted by node and port, each once.
func targetsOf(ports []ServicePortView) []TargetView {
	var used []TargetView
	for i := range ports {
		for j := range ports[i].Routes {
			used = append(used, ports[i].Routes[j].Targets...)
		}
	}
	slices.SortFunc(used, func(x, y TargetView) int { return cmp.Or(cmp.Compare(x.Node, y.Node), cmp.Compare(x.Port, y.Port)) })
	return slices.CompactFunc(used, func(x, y TargetView) bool { return x.Node == y.Node && x.Port == y.Port })
}

// nodesFor are the nodes that the routes of ports lead to, where ports are those of the Offer or what a caller's policy has left of them.
func (o *Offer) nodesFor(ports []ServicePortView) []NodeView {
	if sameSlice(ports, o.ports) {
		return o.nodes
	}
	used := targetsOf(ports)
	var nodes []NodeView
	for _, n := range o.nodes {
		n.Listeners = slices.Collect(func(yield func(NodeListenerView) bool) {
			for _, l := range n.Listeners {
				uses := slices.ContainsFunc(used, func(t TargetView) bool { return t.Node == n.Name && t.Port == l.Port })
				if uses && !yield(l) {
					return
				}
			}
		})
		if len(n.Listeners) > 0 {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// mergeNodes makes one list of what several Offers lead to, sorted by name, each node once with the listeners that any of them uses. It takes the list over.
func mergeNodes(list []NodeView) []NodeView {
	slices.SortStableFunc(list, func(x, y NodeView) int { return cmp.Compare(x.Name, y.Name) })
	out := list[:0]
	for _, n := range list {
		if len(out) == 0 || out[len(out)-1].Name != n.Name {
			out = append(out, n)
			continue
		}
		last := &out[len(out)-1]
		last.Listeners = mergeListeners(last.Listeners, n.Listeners)
	}
	return out
}

// mergeListeners joins two lists of one node's listeners, both sorted by port. It changes neither.
func mergeListeners(x, y []NodeListenerView) []NodeListenerView {
	has := func(l NodeListenerView) bool {
		return slices.ContainsFunc(x, func(o NodeListenerView) bool { return o.Port == l.Port })
	}
	if !slices.ContainsFunc(y, func(l NodeListenerView) bool { return !has(l) }) {
		return x
	}
	all := slices.Concat(x, slices.DeleteFunc(slices.Clone(y), has))
	slices.SortFunc(all, func(a, b NodeListenerView) int { return cmp.Compare(a.Port, b.Port) })
	return all
}
