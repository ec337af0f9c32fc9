// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"fmt"
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
	// to are the targets of all routes of port, in order.
	to []*egress
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
	// routes is the route configuration of http, and hosts are its virtual hosts.
	routes *Resource
	hosts  []*host
}

// planOutbound gives each port to the services that claim it, in the order of their names.
func (b *builder) planOutbound() []*portPlan {
	claims := slices.DeleteFunc(slices.Clone(b.claims), b.refuseClaim)
	slices.SortStableFunc(claims, func(x, y claim) int {
		return cmp.Or(cmp.Compare(x.port.Port, y.port.Port), cmp.Compare(x.tcp(), y.tcp()))
	})
	var out []*portPlan
	for len(claims) > 0 {
		port := claims[0].port.Port
		end := until(claims, func(c claim) bool { return c.port.Port != port })
		tcp := until(claims[:end], func(c claim) bool { return c.tcp() == 1 })
		p := &portPlan{port: port, http: claims[:tcp:tcp]}
		for _, c := range claims[tcp:end] {
			if p.placeTCP(c) {
				p.tcp = append(p.tcp, c)
			}
		}
		out, claims = append(out, p), claims[end:]
	}
	return out
}

// tcp is 1 for a claim to TCP connections, and 0 for one to requests.
func (c claim) tcp() int {
	if c.port.Protocol == mesh.ProtocolTCP {
		return 1
	}
	return 0
}

// until counts the claims before the first that is so.
func until(claims []claim, is func(claim) bool) int {
	if i := slices.IndexFunc(claims, is); i >= 0 {
		return i
	}
	return len(claims)
}

// refuseClaim reports a claim to a port on which no service can be called.
func (b *builder) refuseClaim(c claim) bool {
	why := refusePort(c.port.Port)
	if why != "" {
		b.report(mesh.ReasonPortConflict, mesh.VirtualServiceKey(b.mesh, c.service.Name), mesh.Finding{Value: portText(c.port.Port), Message: why, Mend: "choose another port"})
	}
	return why != ""
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
			set(&p.addresses, a, c)
			placed = true
		}
	}
	if len(c.service.Addresses) > 0 {
		return placed
	}
	if p.port == tlsPort {
		name := strings.ToLower(c.service.Name)
		if _, taken := p.names[name]; !taken && name != "" {
			set(&p.names, name, c)
			placed = true
		}
	}
	if len(p.http) == 0 && p.rest == nil {
		p.rest = &c
		placed = true
	}
	return placed
}

// set puts a claim into a map that most ports do without.
func set[K comparable](into *map[K]claim, key K, c claim) {
	if *into == nil {
		*into = map[K]claim{}
	}
	(*into)[key] = c
}
