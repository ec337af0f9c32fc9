// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"cmp"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
)

// EndpointSetOf computes the endpoints of one listener of a node from r, and returns the keys that it has read (see ViewOf).
// The set is never nil; it is empty where the node or the listener does not exist, or the node is found through DNS.
func EndpointSetOf(r Reader, key EndpointSetKey) (*EndpointSet, []Key, []Finding) {
	l := newLookup(r, 6)
	set := l.endpointSet(key)
	return set, l.keys(), SortFindings(l.findings)
}

func (l *lookup) endpointSet(key EndpointSetKey) *EndpointSet {
	set := &EndpointSet{Key: key}
	node, ok := find[*VirtualNode](l, NodeKey(key.Mesh, key.Node))
	if !ok {
		return set
	}
	index := node.listenerIndex(key.Port)
	if index < 0 || node.Spec.Listeners[index].PortMapping.Protocol != key.Protocol {
		return set
	}
	mesh, _ := find[*Mesh](l, MeshKey(key.Mesh))
	d := l.discover(node, mesh.preference())
	switch {
	case d.Type != DiscoveryEndpoints:
	case d.service != nil:
		all := l.sliceEndpoints(node, index, d.service)
		if set.Endpoints = ofFamily(all, d.IPPreference); len(set.Endpoints) == 0 && len(all) > 0 {
			l.report(Finding{
				Severity: SeverityWarning, Reason: ReasonNoTraffic, Object: node.Source, Field: d.field, Value: string(d.IPPreference),
				Message: fmt.Sprintf("virtual node %q has no endpoint of the IP family that %s asks for", node.Name, d.IPPreference),
				Mend:    "choose the family of the Service's endpoints, or a preference that ends in _PREFERRED",
			})
		}
	case d.workloads:
		set.Endpoints = l.workloadEndpoints(node, key.Port, d.IPPreference)
	}
	set.Endpoints = sortEndpoints(set.Endpoints)
	return set
}

// sliceEndpoints are the endpoints of service for one listener of node, of both IP families.
func (l *lookup) sliceEndpoints(node *VirtualNode, index int, service *Service) []SetEndpoint {
	listener := node.Spec.Listeners[index].PortMapping.Port
	var list []SetEndpoint
	for _, o := range l.children(EndpointSliceKey(service.Namespace, service.Name, "")) {
		slice, ok := o.(*EndpointSlice)
		if !ok {
			continue
		}
		port := slice.portFor(service, listener)
		if len(slice.Endpoints) > 0 && node.listenerIndex(port) < 0 {
			l.report(Finding{
				Severity: SeverityWarning, Reason: ReasonNotCaptured, Object: node.Source, Field: listenerField(index) + ".portMapping.port", Value: strconv.Itoa(int(listener)),
				Message: fmt.Sprintf("port %d of Service %s/%s leads to port %d of its pods, which is no listener of virtual node %q: the pods' proxies do not see these requests",
					listener, service.Namespace, service.Name, port, node.Name),
				Mend: fmt.Sprintf("let the node listen on port %d", port),
			})
		}
		for _, e := range slice.Endpoints {
			if draining, ok := e.state(); ok && e.Address.IsValid() {
				list = append(list, SetEndpoint{Address: socket(e.Address, port), Draining: draining, Zone: e.Zone})
			}
		}
	}
	return list
}

// state says whether e takes requests, and whether it only finishes what it has.
func (e *Endpoint) state() (draining, ok bool) {
	if e.Terminating {
		return true, e.Serving
	}
	return false, e.Ready
}

// portFor is the port of the slice's endpoints that serves a listener's port: through the Service's port of that number where there is one, else the same.
func (s *EndpointSlice) portFor(service *Service, listener int32) int32 {
	for _, sp := range service.Ports {
		if sp.Port != listener {
			continue
		}
		for _, ep := range s.Ports {
			if ep.Name == sp.Name && validPort(ep.Port) {
				return ep.Port
			}
		}
	}
	return listener
}

// workloadEndpoints are the node's own pods that carry all attributes the node asks for.
func (l *lookup) workloadEndpoints(node *VirtualNode, port int32, preference IPPreference) []SetEndpoint {
	var attributes []CloudMapAttribute
	if sd := node.Spec.ServiceDiscovery; sd != nil && sd.AWSCloudMap != nil {
		attributes = sd.AWSCloudMap.Attributes
	}
	var list []SetEndpoint
	for _, o := range l.children(WorkloadKey(node.MeshName, node.Name, "", "")) {
		w, ok := o.(*Workload)
		if !ok || !w.Ready && !w.Terminating || !w.carries(attributes) {
			continue
		}
		own := make([]SetEndpoint, 0, len(w.Addresses))
		for _, a := range w.Addresses {
			if a.IsValid() {
				own = append(own, SetEndpoint{Address: socket(a, port), Draining: w.Terminating, Zone: w.Zone})
			}
		}
		// A pod is one endpoint, however many addresses it has.
		if own = ofFamily(own, preference); len(own) > 0 {
			list = append(list, own[0])
		}
	}
	return list
}

func (w *Workload) carries(attributes []CloudMapAttribute) bool {
	for _, a := range attributes {
		if value, ok := w.Attributes[a.Key]; !ok || value != a.Value {
			return false
		}
	}
	return true
}

// socket joins an address and a port from 0 to 65535.
func socket(address netip.Addr, port int32) netip.AddrPort {
	if port < 0 || port > math.MaxUint16 {
		port = 0
	}
	return netip.AddrPortFrom(address.Unmap(), uint16(port))
}

// ofFamily leaves the endpoints of the IP family that preference asks for. Without one IPv4 is taken where there is any, as App Mesh did for AWS Cloud Map.
func ofFamily(list []SetEndpoint, preference IPPreference) []SetEndpoint {
	want6 := preference == IPv6Only || preference == IPv6Preferred
	only := preference == IPv4Only || preference == IPv6Only
	preferred := make([]SetEndpoint, 0, len(list))
	for _, e := range list {
		if e.Address.Addr().Is6() == want6 {
			preferred = append(preferred, e)
		}
	}
	if only || len(preferred) > 0 {
		return preferred
	}
	return list
}

// sortEndpoints sorts by zone, address and port, and keeps each address once: one slice may still hold what another has taken over, and the one that takes requests wins.
func sortEndpoints(list []SetEndpoint) []SetEndpoint {
	slices.SortFunc(list, func(a, b SetEndpoint) int {
		return cmp.Or(a.Address.Compare(b.Address), compareBool(a.Draining, b.Draining), cmp.Compare(a.Zone, b.Zone))
	})
	list = slices.CompactFunc(list, func(a, b SetEndpoint) bool { return a.Address == b.Address })
	slices.SortStableFunc(list, func(a, b SetEndpoint) int { return cmp.Compare(a.Zone, b.Zone) })
	return list
}

// compareBool puts false first.
func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}

// Compare orders keys by mesh, node, port and protocol.
func (k EndpointSetKey) Compare(o EndpointSetKey) int {
	return cmp.Or(cmp.Compare(k.Mesh, o.Mesh), cmp.Compare(k.Node, o.Node), cmp.Compare(k.Port, o.Port), cmp.Compare(k.Protocol, o.Protocol))
}

// EndpointSets are the keys of the endpoint sets that the View names, sorted.
func (v *View) EndpointSets() []EndpointSetKey {
	var keys []EndpointSetKey
	for i := range v.Nodes {
		n := &v.Nodes[i]
		if n.Discovery.Type != DiscoveryEndpoints {
			continue
		}
		for j := range n.Listeners {
			keys = append(keys, EndpointSetKey{Mesh: v.Proxy.Mesh, Node: n.Name, Port: n.Listeners[j].Port, Protocol: n.Listeners[j].Protocol})
		}
	}
	slices.SortFunc(keys, EndpointSetKey.Compare)
	return keys
}
