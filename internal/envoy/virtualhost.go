// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// passHost is the virtual host that takes, under ALLOW_ALL, every host that the mesh does not model.
const passHost = "default_backend"

// hostID names a service on a port.
type hostID struct {
	port    int32
	service string
}

// host is a virtual host and what it was made from.
type host struct {
	claim   claim
	message *routev3.VirtualHost
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
	r := Resource{Name: egressRoutesName(p.port)}
	hosts := make([]*routev3.VirtualHost, 0, len(p.http)+1)
	taken := make(map[string]bool, 2*len(p.http))
	same := b.last != nil
	for _, c := range p.http {
		id := hostID{port: p.port, service: c.service.Name}
		message := b.virtualHost(c, b.domains(c, taken))
		if message == nil {
			continue
		}
		same = same && b.last.hosts[id] != nil && b.last.hosts[id].message == message
		b.hosts[id] = &host{claim: c, message: message}
		hosts = append(hosts, message)
	}
	if b.take(b.routes, r.Name, same && b.last.hostsOf(p.port) == len(hosts)) {
		return
	}
	for i, c := range hosts {
		r.Needs = hostNeeds(r.Needs, hosts[i])
		r.Origins = append(r.Origins, b.claimOrigins(b.hosts[hostID{port: p.port, service: c.GetName()}].claim)...)
	}
	if b.allowsAll() {
		hosts = append(hosts, b.passVirtualHost())
		r.Needs = append(r.Needs, passName(b.mesh))
	}
	slices.SortStableFunc(hosts, func(x, y *routev3.VirtualHost) int { return cmp.Compare(x.GetName(), y.GetName()) })
	r.Message = &routev3.RouteConfiguration{Name: r.Name, VirtualHosts: hosts}
	put(b.routes, r) // its virtual hosts are checked, and it has nothing else
}

// hostsOf counts the services on a port.
func (b *builder) hostsOf(port int32) int {
	n := 0
	for id := range b.hosts {
		if id.port == port {
			n++
		}
	}
	return n
}

// passVirtualHost takes every host that the mesh does not model to where the client meant to go, with no limit of time.
func (b *builder) passVirtualHost() *routev3.VirtualHost {
	action := &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: passName(b.mesh)}, Timeout: &durationpb.Duration{}}
	return &routev3.VirtualHost{Name: passHost, Domains: []string{"*"}, Routes: []*routev3.Route{{Match: everything(), Action: &routev3.Route_Route{Route: action}}}}
}

// claimOrigins are the objects that a service's answer on a port comes from.
func (b *builder) claimOrigins(c claim) []mesh.Key {
	out := []mesh.Key{mesh.VirtualServiceKey(b.mesh, c.service.Name)}
	for i := range c.port.Routes {
		out = append(out, c.port.Routes[i].Route)
	}
	return out
}

// virtualHost makes the virtual host of a service on a port; nil where no host name is left for it.
func (b *builder) virtualHost(c claim, domains []string) *routev3.VirtualHost {
	if len(domains) == 0 {
		return nil
	}
	if old := b.takeHost(c, domains); old != nil {
		return old
	}
	host := &routev3.VirtualHost{Name: c.service.Name, Domains: domains, Routes: make([]*routev3.Route, 0, max(len(c.port.Routes), 1))}
	for i := range c.port.Routes {
		host.Routes = append(host.Routes, b.route(c.service, &c.port.Routes[i]))
	}
	if len(host.GetRoutes()) == 0 {
		host.Routes = append(host.Routes, refusal(everything()))
	}
	if check(host) == nil {
		return host
	}
	for i := range c.port.Routes {
		if err := check(host.GetRoutes()[i]); err != nil {
			host.Routes[i] = b.refuse(&c.port.Routes[i], host.GetRoutes()[i], err)
		}
	}
	if err := check(host); err != nil {
		b.reject(mesh.VirtualServiceKey(b.mesh, c.service.Name), c.service.Name, err)
		return nil
	}
	return host
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
	for _, domain := range []string{name, name + ":" + portText(c.port.Port)} {
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

// hostNeeds appends the clusters that a virtual host's routes name.
func hostNeeds(list []string, host *routev3.VirtualHost) []string {
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
		cluster := ingressName(b.mesh, b.view.Proxy.Name, l.PortMapping)
		action := &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: cluster}, Timeout: &durationpb.Duration{}}
		if t := httpTimeout(l); t != nil {
			action.Timeout = span(t.PerRequest.Span())
			if t.Idle != nil {
				action.IdleTimeout = span(t.Idle.Span())
			}
		}
		name := ingressRoutesName(l.PortMapping.Port)
		if b.take(b.routes, name, true) {
			continue
		}
		b.add(b.routes, Resource{
			Name: name, Needs: []string{cluster}, Origins: []mesh.Key{b.view.Proxy},
			Message: &routev3.RouteConfiguration{Name: name, VirtualHosts: []*routev3.VirtualHost{{
				Name: "ingress", Domains: []string{"*"}, Routes: []*routev3.Route{{Match: everything(), Action: &routev3.Route_Route{Route: action}}},
			}}},
		}, b.view.Proxy)
	}
}

// httpTimeout is a listener's timeout whatever HTTP protocol it is written under.
func httpTimeout(l *mesh.Listener) *mesh.HTTPTimeout {
	if l.Timeout == nil {
		return nil
	}
	return cmp.Or(l.Timeout.HTTP, l.Timeout.HTTP2, l.Timeout.GRPC)
}
