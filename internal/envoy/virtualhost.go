// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// passHost is the virtual host that takes, under ALLOW_ALL, every host that the mesh does not model.
const passHost = "default_backend"

// egressRouteConfigurations makes one route configuration for each port on which HTTP services are called.
func (b *builder) egressRouteConfigurations() {
	for _, p := range b.plan {
		if len(p.http) > 0 {
			b.egressRouteConfiguration(p)
		}
	}
}

func (b *builder) egressRouteConfiguration(p *portPlan) {
	taken := takenDomains(p.http)
	p.hosts = make([]*host, 0, len(p.http)+1)
	for _, c := range p.http {
		if h := b.host(c, taken); h != nil && h.message != nil {
			p.hosts = append(p.hosts, h)
		}
	}
	if b.allowsAll() {
		p.hosts = append(p.hosts, b.passHost())
	}
	slices.SortStableFunc(p.hosts, func(x, y *host) int { return cmp.Compare(x.service, y.service) })
	p.routes = b.routesOf(p)
	b.routes = append(b.routes, p.routes)
}

// routesOf makes the route configuration of a port from its hosts, which are checked; it has nothing else. The one of the View before is taken over if it has the same hosts.
func (b *builder) routesOf(p *portPlan) *Resource {
	r := &Resource{Name: egressRoutesName(p.port), hosts: p.hosts}
	if old := b.lastPlan(p.port); old != nil && old.routes != nil {
		if slices.Equal(old.hosts, p.hosts) {
			return old.routes
		}
		if slices.EqualFunc(old.hosts, p.hosts, (*host).isLike) {
			r.Needs, r.Origins = old.routes.Needs, old.routes.Origins
		}
	}
	messages := make([]*routev3.VirtualHost, 0, len(p.hosts))
	for _, h := range p.hosts {
		messages = append(messages, h.message)
	}
	r.Message = &routev3.RouteConfiguration{Name: r.Name, VirtualHosts: messages}
	if r.Needs == nil {
		needs, origins := 0, 0
		for _, h := range p.hosts {
			needs, origins = needs+len(h.needs), origins+len(h.origins)
		}
		r.Needs, r.Origins = make([]string, 0, needs), make([]mesh.Key, 0, origins)
		for _, h := range p.hosts {
			r.Needs, r.Origins = append(r.Needs, h.needs...), append(r.Origins, h.origins...)
		}
		r.Needs, r.Origins = unique(r.Needs, cmp.Compare[string]), unique(r.Origins, mesh.Key.Compare)
	}
	return r
}

// lastPlan is what became of a port in the View before; nil for nothing.
func (b *builder) lastPlan(port int32) *portPlan {
	if b.last != nil {
		for _, p := range b.last.plan {
			if p.port == port {
				return p
			}
		}
	}
	return nil
}

// passHost finds or makes the virtual host that takes every host that the mesh does not model to where the client meant to go, with no limit of time.
func (b *builder) passHost() *host {
	in := hostInput{mesh: b.mesh, service: passHost}
	return b.parts.hosts.get(in, func(*host) bool { return true }, func() *host {
		cluster := passName(b.mesh)
		action := &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}, Timeout: &durationpb.Duration{}}
		h := &hostMaker{hostInput: in}
		return h.host(&routev3.VirtualHost{
			Name: passHost, Domains: []string{"*"}, Routes: []*routev3.Route{{Match: everything(), Action: &routev3.Route_Route{Route: action}}},
		})
	})
}

// host finds or makes the virtual host of a service on a port; nil where no host name is left for it.
func (b *builder) host(c claim, taken map[string]bool) *host {
	var domains []string
	if taken != nil {
		switch domains = b.domains(c, taken); len(domains) {
		case 0:
			return nil
		case 2:
			domains = nil
		}
	}
	in := hostInput{mesh: b.mesh, service: c.service.Name, port: c.port, tagged: b.tagged()}
	same := func(h *host) bool { return slices.Equal(h.domains, domains) && slices.EqualFunc(h.to, c.to, target.is) }
	h := b.parts.hosts.get(in, same, func() *host { return in.make(c, domains) })
	b.found = append(b.found, h.findings...)
	return h
}

// The fields of a route configuration that translation sets.
const (
	fieldRoutesName   = 1
	fieldVirtualHosts = 2
)

// encodeRoutes is the encoding of a route configuration, in pieces.
func encodeRoutes(name string, hosts []*host) [][]byte {
	pieces := make([][]byte, 0, 1+len(hosts))
	pieces = append(pieces, protowire.AppendString(protowire.AppendTag(nil, fieldRoutesName, protowire.BytesType), name))
	for _, h := range hosts {
		pieces = append(pieces, h.encoded)
	}
	return pieces
}

// ingressRouteConfigurations sends all requests of each HTTP listener to the workload. A timeout that the listener does not ask for is none.
func (b *builder) ingressRouteConfigurations(listeners []*mesh.Listener) {
	for _, l := range listeners {
		if l.PortMapping.Protocol == mesh.ProtocolTCP {
			continue
		}
		b.ingressRouteConfiguration(l)
	}
}

func (b *builder) ingressRouteConfiguration(l *mesh.Listener) {
	name := ingressRoutesName(l.PortMapping.Port)
	cluster := ingressName(b.mesh, b.view.Proxy.Name, l.PortMapping)
	action := &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}, Timeout: &durationpb.Duration{}}
	if t := httpTimeout(l); t != nil {
		action.Timeout = span(t.PerRequest.Span())
		if t.Idle != nil {
			action.IdleTimeout = span(t.Idle.Span())
		}
	}
	b.add(&b.routes, &Resource{
		Name: name, Needs: []string{cluster}, Origins: []mesh.Key{b.view.Proxy},
		Message: &routev3.RouteConfiguration{Name: name, VirtualHosts: []*routev3.VirtualHost{{
			Name: "ingress", Domains: []string{"*"}, Routes: []*routev3.Route{{Match: everything(), Action: &routev3.Route_Route{Route: action}}},
		}}},
	}, b.view.Proxy)
}

// httpTimeout is a listener's timeout whatever HTTP protocol it is written under.
func httpTimeout(l *mesh.Listener) *mesh.HTTPTimeout {
	if l.Timeout == nil {
		return nil
	}
	return cmp.Or(l.Timeout.HTTP, l.Timeout.HTTP2, l.Timeout.GRPC)
}
