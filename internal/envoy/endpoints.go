// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"net/netip"
	"slices"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Endpoints makes the load assignment of one listener of a node: a locality for each zone, and endpoints that are going away as DRAINING, so that they finish what they have.
func Endpoints(s *mesh.EndpointSet) *Resource {
	name := EndpointsName(s.Key)
	return &Resource{
		Name:    name,
		Message: &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: localities(s.Endpoints)},
		Origins: []mesh.Key{mesh.NodeKey(s.Key.Mesh, s.Key.Node)},
	}
}

// localities groups endpoints, which are sorted by zone.
func localities(list []mesh.SetEndpoint) []*endpointv3.LocalityLbEndpoints {
	var out []*endpointv3.LocalityLbEndpoints
	for len(list) > 0 {
		zone := list[0].Zone
		n := slices.IndexFunc(list, func(e mesh.SetEndpoint) bool { return e.Zone != zone })
		if n < 0 {
			n = len(list)
		}
		group := &endpointv3.LocalityLbEndpoints{LbEndpoints: lbEndpoints(list[:n])}
		if zone != "" {
			group.Locality = &corev3.Locality{Zone: zone}
		}
		out, list = append(out, group), list[n:]
	}
	return out
}

// slot is the memory of one endpoint: sets are large and change often, so their messages are allocated in one piece.
type slot struct {
	lb       endpointv3.LbEndpoint
	host     endpointv3.LbEndpoint_Endpoint
	endpoint endpointv3.Endpoint
	address  corev3.Address
	union    corev3.Address_SocketAddress
	socket   corev3.SocketAddress
	port     corev3.SocketAddress_PortValue
}

func lbEndpoints(list []mesh.SetEndpoint) []*endpointv3.LbEndpoint {
	slots := make([]slot, len(list))
	out := make([]*endpointv3.LbEndpoint, 0, len(list))
	for i, e := range list {
		if !e.Address.IsValid() {
			continue
		}
		s := &slots[i]
		s.port.PortValue = uint32(e.Address.Port())
		s.socket.Address, s.socket.PortSpecifier = plainAddress(e.Address.Addr()), &s.port
		s.union.SocketAddress = &s.socket
		s.address.Address = &s.union
		s.endpoint.Address = &s.address
		s.host.Endpoint = &s.endpoint
		s.lb.HostIdentifier = &s.host
		if e.Draining {
			s.lb.HealthStatus = corev3.HealthStatus_DRAINING
		}
		out = append(out, &s.lb)
	}
	return out
}

// plainAddress writes an address as Envoy compares it: IPv4 never in IPv6's form, no zone.
func plainAddress(a netip.Addr) string { return a.Unmap().WithZone("").String() }
