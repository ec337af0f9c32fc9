// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// tlsPort is the one port on which the outbound listener reads the server name that a client asks for. It is fixed: a set that followed the services would cut connections with every change.
const tlsPort = 443

// claim is a service's claim to a port.
type claim struct {
	service *mesh.ServiceView
	port    *mesh.ServicePortView
}

// portPlan says what becomes of connections to one port.
type portPlan struct {
	port int32
	// http are the services that share the port's HTTP chain.
	http []claim
	// tcp are the services with a chain of their own.
	tcp []claim
	// addresses, names and rest lead to services of tcp: by address first, then by the server name (on tlsPort alone), then all that is left.
	addresses map[netip.Addr]claim
	names     map[string]claim
	rest      *claim
}

// planOutbound gives each port to the services that claim it, in the order of their names.
func (b *builder) planOutbound() []*portPlan {
	plans := map[int32]*portPlan{}
	for i := range b.view.Services {
		s := &b.view.Services[i]
		for j := range s.Ports {
			c := claim{service: s, port: &s.Ports[j]}
			if why := refusePort(c.port.Port); why != "" {
				b.report(mesh.ReasonPortConflict, mesh.VirtualServiceKey(b.mesh, s.Name), mesh.Finding{Value: portText(c.port.Port), Message: why, Mend: "choose another port"})
				continue
			}
			p := plans[c.port.Port]
			if p == nil {
				p = &portPlan{port: c.port.Port, addresses: map[netip.Addr]claim{}, names: map[string]claim{}}
				plans[p.port] = p
			}
			if c.port.Protocol == mesh.ProtocolTCP {
				p.tcp = append(p.tcp, c)
			} else {
				p.http = append(p.http, c)
			}
		}
	}
	out := slices.SortedFunc(maps.Values(plans), func(x, y *portPlan) int { return cmp.Compare(x.port, y.port) })
	for _, p := range out {
		p.tcp = slices.DeleteFunc(p.tcp, func(c claim) bool { return !p.placeTCP(c) })
	}
	return out
}

// refusePort says why no service can be called on a port; empty where it can.
func refusePort(port int32) string {
	switch {
	case port == inboundPort || port == outboundPort:
		return fmt.Sprintf("port %d belongs to the proxy itself, so the service cannot be called on it", port)
	case port < 1 || port > 65535:
		return fmt.Sprintf("%d is no port, so the service cannot be called on it", port)
	default:
		return ""
	}
}

// placeTCP finds what tells a TCP service's connections from others on its port, and says whether anything does. Of two claims to the same the first by name wins; the
// View's maker has reported the clash, for it knows which backends make it.
func (p *portPlan) placeTCP(c claim) bool {
	placed := false
	for _, a := range c.service.Addresses {
		a = a.Unmap().WithZone("")
		if _, taken := p.addresses[a]; !taken && a.IsValid() {
			p.addresses[a] = c
			placed = true
		}
	}
	if len(c.service.Addresses) > 0 {
		return placed
	}
	if p.port == tlsPort {
		name := strings.ToLower(c.service.Name)
		if _, taken := p.names[name]; !taken && name != "" {
			p.names[name] = c
			placed = true
		}
	}
	if len(p.http) == 0 && p.rest == nil {
		p.rest = &c
		placed = true
	}
	return placed
}
