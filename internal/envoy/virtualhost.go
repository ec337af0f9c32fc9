// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// passHost is the virtual host that takes, under ALLOW_ALL, every host that the mesh does not model.
const passHost = "default_backend"

// hostInput is what a virtual host is made from, its targets and domains apart. What it points to is part of a View, which never changes.
type hostInput struct {
	mesh    string
	service string
	// port is nil for the virtual host of what the mesh does not model.
	port *mesh.ServicePortView
	// tagged says that the proxy's metrics need the service's name.
	tagged bool
}

// host is a virtual host, as far as it depends on its input, targets and domains alone.
type host struct {
	hostInput
	to []target
	// domains are nil for the usual two.
	domains []string
	// message is nil where Envoy would refuse it; findings say why.
	message  *routev3.VirtualHost
	findings []mesh.Finding
	// encoded is message as a field of a route configuration.
	encoded []byte
	needs   []string
	origins []mesh.Key
}

// target is a cluster that a virtual host's routes lead to, and whether it stands.
type target struct {
	part  *cluster
	ready bool
}

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

func (t target) is(e *egress) bool { return t.part == e.part && t.ready == e.ready }

// isLike says whether two virtual hosts are made from the same objects and need the same clusters.
func (h *host) isLike(o *host) bool {
	return h == o || slices.Equal(h.needs, o.needs) && slices.Equal(h.origins, o.origins)
}

// hostMaker makes one virtual host.
type hostMaker struct {
	reporter
	hostInput
}

func (in hostInput) make(c claim, domains []string) *host {
	m := &hostMaker{hostInput: in}
	names := domains
	if names == nil {
		names = usualDomains(in.service, c.port.Port)
	}
	h := m.host(m.virtualHost(c, names))
	h.domains, h.to = domains, make([]target, 0, len(c.to))
	for _, e := range c.to {
		h.to = append(h.to, target{part: e.part, ready: e.ready})
	}
	h.origins = unique(claimOrigins(in.mesh, c), mesh.Key.Compare)
	return h
}

// host encodes a virtual host that is checked; nil stands for one that Envoy would refuse.
func (m *hostMaker) host(message *routev3.VirtualHost) *host {
	h := &host{hostInput: m.hostInput}
	if message != nil {
		value, err := proto.MarshalOptions{Deterministic: true}.Marshal(message)
		if err != nil {
			m.reject(mesh.VirtualServiceKey(m.mesh, m.service), m.service, err)
		} else {
			h.message, h.needs = message, unique(hostNeeds(message), cmp.Compare[string])
			h.encoded = protowire.AppendBytes(protowire.AppendTag(nil, fieldVirtualHosts, protowire.BytesType), value)
		}
	}
	h.findings = m.found
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

// claimOrigins are the objects that a service's answer on a port comes from.
func claimOrigins(meshName string, c claim) []mesh.Key {
	out := make([]mesh.Key, 0, 1+len(c.port.Routes))
	out = append(out, mesh.VirtualServiceKey(meshName, c.service.Name))
	for i := range c.port.Routes {
		out = append(out, c.port.Routes[i].Route)
	}
	return out
}

// virtualHost makes the virtual host of a service on a port; nil for one that Envoy would refuse.
func (m *hostMaker) virtualHost(c claim, domains []string) *routev3.VirtualHost {
	host := &routev3.VirtualHost{Name: m.service, Domains: domains, Routes: make([]*routev3.Route, 0, max(len(c.port.Routes), 1))}
	to := c.to
	for i := range c.port.Routes {
		r := &c.port.Routes[i]
		host.Routes = append(host.Routes, m.route(r, to[:len(r.Targets)]))
		to = to[len(r.Targets):]
	}
	if len(host.GetRoutes()) == 0 {
		host.Routes = append(host.Routes, refusal(everything()))
	}
	if check(host) == nil {
		return host
	}
	for i := range c.port.Routes {
		if err := check(host.GetRoutes()[i]); err != nil {
			host.Routes[i] = m.refuse(&c.port.Routes[i], host.GetRoutes()[i], err)
		}
	}
	if err := check(host); err != nil {
		m.reject(mesh.VirtualServiceKey(m.mesh, m.service), m.service, err)
		return nil
	}
	return host
}

// takenDomains is where the domains of a port's services are noted, so that none stands twice; nil where the services' names alone show that none can.
func takenDomains(claims []claim) map[string]bool {
	last := ""
	for _, c := range claims {
		if name := c.service.Name; name <= last || strings.ContainsFunc(name, unusual) {
			return make(map[string]bool, 2*len(claims))
		}
		last = c.service.Name
	}
	return nil
}

// unusual says of a character that two different names with it may be the same domain, or that it is none of a host name's.
func unusual(c rune) bool {
	return c == ':' || c == '*' || c > unicode.MaxASCII || c >= 'A' && c <= 'Z'
}

// usualDomains are the hosts under which a service is called, with and without the port.
func usualDomains(service string, port int32) []string {
	return []string{service, service + ":" + portText(port)}
}

// domains are the hosts under which a service is called on a port, with and without the port. Envoy compares them without regard to case, reads "*" as a pattern, and
// refuses the whole route configuration for a domain that stands in it twice.
func (b *builder) domains(c claim, taken map[string]bool) []string {
	name := c.service.Name
	key := mesh.VirtualServiceKey(b.mesh, name)
	if name == "" || strings.Contains(name, "*") {
		b.report(mesh.ReasonInvalid, key, mesh.Finding{
			Value: name, Message: fmt.Sprintf("%q is no host name that a client can call, so the service is left out", clip(name)), Mend: "name the service by the host that clients call",
		})
		return nil
	}
	var out []string
	for _, domain := range usualDomains(name, c.port.Port) {
		if folded := strings.ToLower(domain); !taken[folded] {
			taken[folded] = true
			out = append(out, domain)
			continue
		}
		b.report(mesh.ReasonDuplicate, key, mesh.Finding{
			Value: domain, Message: fmt.Sprintf("another virtual service has the host %q on port %d already", clip(domain), c.port.Port), Mend: "rename one of the two",
		})
	}
	return out
}

// hostNeeds are the clusters that a virtual host's routes name.
func hostNeeds(host *routev3.VirtualHost) []string {
	var list []string
	for _, r := range host.GetRoutes() {
		if one := r.GetRoute().GetCluster(); one != "" {
			list = append(list, one)
		}
		for _, w := range r.GetRoute().GetWeightedClusters().GetClusters() {
			list = append(list, w.GetName())
		}
	}
	return list
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
