// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
)

// ServerNamePort is the one port on which the name that a client asks for in a TLS handshake (SNI) tells connections apart. Elsewhere nobody waits for a handshake, since a server
// that speaks first would stall.
const ServerNamePort = 443

// claim is a port of a backend.
type claim struct {
	service   string
	addresses []netip.Addr
	protocol  Protocol
}

// portConflicts finds backends of one port that cannot be told apart. HTTP is told apart by host name, TCP by address and, where a client sends one, by SNI. Two services for TCP
// stay both: the first by name gets what SNI does not decide. TCP stays beside HTTP too, without the connections that are HTTP's, unless it would take them by their address.
func (b *builder) portConflicts(n *VirtualNode, backends []backend, v *View) {
	if !slices.ContainsFunc(v.Services, ServiceView.hasTCP) {
		return
	}
	claims := make(map[int32][]claim)
	for i := range v.Services {
		s := &v.Services[i]
		for _, p := range s.Ports {
			claims[p.Port] = append(claims[p.Port], claim{service: s.Name, addresses: s.Addresses, protocol: p.Protocol})
		}
	}
	dropped := false
	for i := range v.Services {
		s := &v.Services[i]
		conflicts := func(p ServicePortView) bool {
			return p.Protocol == ProtocolTCP && len(claims[p.Port]) > 1 && b.tcpConflict(n, backends, p.Port, claim{service: s.Name, addresses: s.Addresses}, claims[p.Port])
		}
		// All callers share the list, so one that changes is copied.
		if left := slices.DeleteFunc(slices.Clone(s.Ports), conflicts); len(left) < len(s.Ports) {
			s.Ports, dropped = left, true
		}
	}
	if dropped {
		v.Services = slices.DeleteFunc(v.Services, func(s ServiceView) bool { return len(s.Ports) == 0 })
	}
}

func (s ServiceView) hasTCP() bool {
	return slices.ContainsFunc(s.Ports, func(p ServicePortView) bool { return p.Protocol == ProtocolTCP })
}

// tcpConflict reports what stands against mine, a claim for TCP, and says whether it must be left out.
func (b *builder) tcpConflict(n *VirtualNode, backends []backend, port int32, mine claim, all []claim) bool {
	i := slices.IndexFunc(backends, func(be backend) bool { return be.service == mine.service })
	f := Finding{
		Reason: ReasonPortConflict, Object: n.Source, Field: backends[i].field() + ".virtualServiceName", Value: mine.service,
		Mend: "give the services ports of their own, or Services with a cluster IP, named as the virtual services are",
	}
	for _, other := range all {
		if other.service == mine.service || !overlap(mine.addresses, other.addresses, other.protocol) {
			continue
		}
		if other.protocol != ProtocolTCP {
			f.Severity = SeverityError
			if port == ServerNamePort {
				f.Severity = SeverityWarning
			}
			f.Message = fmt.Sprintf("virtual node %q cannot tell TCP connections to port %s for %q from those for %q, which speaks %s and gets all that do not name their host in a TLS handshake on port %d",
				n.Name, portText(port), mine.service, other.service, other.protocol, ServerNamePort)
			b.report(f)
			return len(mine.addresses) > 0
		}
		if other.service < mine.service {
			f.Severity = SeverityWarning
			f.Message = fmt.Sprintf("virtual node %q cannot tell TCP connections to port %s for %q from those for %q, which gets all that do not name their host in a TLS handshake", n.Name, portText(port), mine.service, other.service)
			b.report(f)
			return false
		}
	}
	return false
}

// overlap says whether connections for TCP with the addresses mine may also be meant for other: where they share an address, or have none by which to know them. A service for TCP with
// addresses never meets one without, which gets the rest of the port.
func overlap(mine, other []netip.Addr, protocol Protocol) bool {
	if len(mine) == 0 {
		return len(other) == 0 || protocol != ProtocolTCP
	}
	return slices.ContainsFunc(mine, func(a netip.Addr) bool { return slices.Contains(other, a) })
}

func portText(port int32) string { return strconv.Itoa(int(port)) }
