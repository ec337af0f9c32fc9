// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

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
