// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"fmt"
	"math"
	"strconv"
)

// Validate checks one object against the limits, unions and rules of the App Mesh API and returns all faults, sorted, with the field's path in the API's form. It looks at no other
// object. Services, slices and workloads have no faults. Source: App Mesh API model, and the rules that its service enforced beyond it.
func Validate(o Object) []Finding {
	c := &checker{source: o.From()}
	switch o := o.(type) {
	case *Mesh:
		c.meta("mesh", "meshName", o.Meta)
		c.mesh(&o.Spec)
	case *VirtualNode:
		c.meta("virtual node", "virtualNodeName", o.Meta)
		c.virtualNode(o)
	case *VirtualService:
		c.meta("virtual service", "virtualServiceName", o.Meta)
		c.virtualService(&o.Spec)
	case *VirtualRouter:
		c.meta("virtual router", "virtualRouterName", o.Meta)
		c.virtualRouter(&o.Spec)
	case *Route:
		c.meta("route", "routeName", o.Meta)
		c.name("virtualRouterName", o.RouterName)
		c.route(o)
	case *VirtualGateway:
		c.meta("virtual gateway", "virtualGatewayName", o.Meta)
		c.virtualGateway(&o.Spec)
	case *GatewayRoute:
		c.meta("gateway route", "gatewayRouteName", o.Meta)
		c.name("virtualGatewayName", o.GatewayName)
		c.gatewayRoute(o)
	}
	return SortFindings(c.findings)
}

func (c *checker) meta(kind, field string, m Meta) {
	c.subject = fmt.Sprintf("%s %q", kind, shorten(m.Name))
	c.name(field, m.Name)
	if field != "meshName" {
		c.name("meshName", m.MeshName)
	}
	if m.Owner != "" && !isAccount(m.Owner) {
		c.fault("meshOwner", m.Owner, "is not an account", "use the 12 digits of the account")
	}
}

func (c *checker) mesh(s *MeshSpec) {
	if s.EgressFilter != nil {
		oneOf(c, "spec.egressFilter.type", s.EgressFilter.Type, EgressAllowAll, EgressDropAll)
	}
	if s.ServiceDiscovery != nil {
		c.ipPreference("spec.serviceDiscovery.ipPreference", s.ServiceDiscovery.IPPreference)
	}
}

func (c *checker) ipPreference(field string, p IPPreference) {
	optionalOneOf(c, field, p, IPv6Preferred, IPv4Preferred, IPv4Only, IPv6Only)
}

func (c *checker) virtualService(s *VirtualServiceSpec) {
	p := s.Provider
	if p == nil {
		return
	}
	c.union("spec.provider", member{"virtualNode", p.VirtualNode != nil}, member{"virtualRouter", p.VirtualRouter != nil})
	if p.VirtualNode != nil {
		c.name("spec.provider.virtualNode.virtualNodeName", p.VirtualNode.VirtualNodeName)
	}
	if p.VirtualRouter != nil {
		c.name("spec.provider.virtualRouter.virtualRouterName", p.VirtualRouter.VirtualRouterName)
	}
}

func (c *checker) virtualRouter(s *VirtualRouterSpec) {
	ports := make([]int32, 0, len(s.Listeners))
	for i, li := range s.Listeners {
		c.portMapping(listenerField(i)+".portMapping", li.PortMapping, protocols())
		ports = append(ports, li.PortMapping.Port)
	}
	c.uniquePorts(ports)
}

func (c *checker) portMapping(field string, m PortMapping, allowed []Protocol) {
	c.port(field+".port", m.Port)
	oneOf(c, field+".protocol", m.Protocol, allowed...)
}

// uniquePorts checks that no two listeners have one port.
func (c *checker) uniquePorts(ports []int32) {
	seen := make(map[int32]int, len(ports))
	for i, p := range ports {
		if first, twice := seen[p]; twice {
			field := listenerField(i) + ".portMapping.port"
			c.fault(field, strconv.Itoa(int(p)), fmt.Sprintf("is the port of %s too", listenerField(first)), "give each listener a port of its own")
			c.findings[len(c.findings)-1].Reason = ReasonDuplicate
			continue
		}
		seen[p] = i
	}
}

func (c *checker) logging(l *Logging) {
	if l == nil || l.AccessLog == nil {
		return
	}
	field := "spec.logging.accessLog"
	c.union(field, member{"file", l.AccessLog.File != nil})
	if l.AccessLog.File == nil {
		return
	}
	field += ".file"
	c.text(field+".path", l.AccessLog.File.Path, 255)
	format := l.AccessLog.File.Format
	if format == nil {
		return
	}
	field += ".format"
	c.union(field, member{"json", format.JSON != nil}, member{"text", format.Text != ""})
	if format.Text != "" {
		c.text(field+".text", format.Text, 1000)
	}
	for i, ref := range format.JSON {
		c.text(at(field+".json", i)+".key", ref.Key, 100)
		c.text(at(field+".json", i)+".value", ref.Value, 100)
	}
}

func (c *checker) healthCheck(field string, h *HealthCheckPolicy, listener PortMapping, allowed []Protocol) {
	if h == nil {
		return
	}
	c.number(field+".healthyThreshold", int64(h.HealthyThreshold), 2, 10)
	c.number(field+".unhealthyThreshold", int64(h.UnhealthyThreshold), 2, 10)
	c.number(field+".intervalMillis", h.IntervalMillis, 5000, 300000)
	c.number(field+".timeoutMillis", h.TimeoutMillis, 2000, 60000)
	oneOf(c, field+".protocol", h.Protocol, allowed...)
	if h.Port != 0 && h.Port != listener.Port {
		c.fault(field+".port", strconv.Itoa(int(h.Port)), fmt.Sprintf("is not the listener's port, %d", listener.Port), "use the listener's port, or leave it out")
	}
	if h.Path != "" && (h.Protocol == ProtocolTCP || h.Protocol == ProtocolGRPC) {
		c.ignored(field+".path", h.Path, fmt.Sprintf("means nothing for a check over %s", h.Protocol), "remove it")
	}
	if h.Protocol == ProtocolGRPC && (listener.Protocol == ProtocolHTTP || listener.Protocol == ProtocolTCP) {
		c.fault(field+".protocol", string(h.Protocol), fmt.Sprintf("is grpc, and the listener's is %s: a gRPC check needs a listener for http2 or grpc", listener.Protocol), "use the listener's protocol")
	}
}

// pool checks the limits of a connection pool; a gateway's has no tcp.
func (c *checker) pool(field string, p *ConnectionPool, protocol Protocol, gateway bool) {
	if p == nil {
		return
	}
	members := []member{{"grpc", p.GRPC != nil}, {"http", p.HTTP != nil}, {"http2", p.HTTP2 != nil}}
	if gateway && p.TCP != nil {
		c.fault(field+".tcp", "", "is not allowed: a gateway has no listener for tcp", "remove it")
	} else if !gateway {
		members = append(members, member{"tcp", p.TCP != nil})
	}
	c.union(field, members...)
	c.protocolMember(field, protocol, members)
	positive := func(member string, value int32) { c.number(field+"."+member, int64(value), 1, math.MaxInt64) }
	if p.HTTP != nil {
		positive("http.maxConnections", p.HTTP.MaxConnections)
		if p.HTTP.MaxPendingRequests != nil {
			positive("http.maxPendingRequests", *p.HTTP.MaxPendingRequests)
		}
	}
	if p.HTTP2 != nil {
		positive("http2.maxRequests", p.HTTP2.MaxRequests)
	}
	if p.GRPC != nil {
		positive("grpc.maxRequests", p.GRPC.MaxRequests)
	}
	if p.TCP != nil && !gateway {
		positive("tcp.maxConnections", p.TCP.MaxConnections)
	}
}

// protocolMember checks that what is set of a union is the member of the listener's protocol.
func (c *checker) protocolMember(field string, protocol Protocol, members []member) {
	for _, m := range members {
		if m.set && m.name != string(protocol) {
			c.fault(field+"."+m.name, "", fmt.Sprintf("is for %s, and the listener's protocol is %q", m.name, protocol), "set the member of the listener's protocol")
		}
	}
}
