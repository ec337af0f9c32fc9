// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package plane

import (
	"fmt"
	"slices"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// build gathers what one step changes. It is used under the plane's lock and thrown away.
type build struct {
	p      *Plane
	update xds.Update
}

func (p *Plane) begin() *build {
	return &build{p: p, update: xds.Update{Groups: map[string]*xds.Config{}, Endpoints: map[string]*xds.Resource{}}}
}

func (b *build) end() xds.Update { return b.update }

// group computes a group's View again, and its configuration where the View differs.
func (b *build) group(g *group) {
	used := make([]*offer, 0, len(g.offers))
	view, reads, findings := mesh.ViewWith(b.p.now, g.proxy, g.profile, func(service string) *mesh.Offer {
		o := b.offerOf(mesh.VirtualServiceKey(g.proxy.Mesh, service))
		used = append(used, o)
		return o.made
	})
	b.p.readBy.replace(reader{group: g}, g.reads, reads)
	b.p.useOffers(g, used)
	g.reads = reads
	g.findings = findings
	if view == nil {
		// A node whose mesh is gone keeps what it has; a node that is gone itself does not.
		if g.view == nil || b.p.now.Get(g.proxy) == nil {
			b.drop(g)
		}
		return
	}
	if view.Equal(g.view) {
		g.findings = slices.Concat(findings, g.translation)
		return
	}
	resources, found := g.translator.Build(view)
	g.translation = attribute(b.p.now, g.proxy.Mesh, found)
	b.encode(g, resources)
	if g.view == nil || !g.view.SameNodes(view) {
		b.use(g, view.EndpointSets())
	}
	g.view, g.built = view, resources
	g.findings = slices.Concat(findings, g.translation)
	b.update.Groups[g.name] = g.config
}

// drop takes a group's configuration away; its proxies keep what they have and are told that their node is gone.
func (b *build) drop(g *group) {
	if g.config != nil {
		b.update.Groups[g.name] = nil
	}
	g.view, g.config, g.translator = nil, nil, envoy.Incremental{Parts: b.p.parts}
	g.built, g.encoded = envoy.Resources{}, xds.Config{}
	b.use(g, nil)
}

// forget removes a group that nobody is in.
func (p *Plane) forget(g *group) {
	p.readBy.replace(reader{group: g}, g.reads, nil)
	p.useOffers(g, nil)
	delete(p.groups, g.name)
}

// use makes g a user of exactly the sets of next, which are sorted.
func (b *build) use(g *group, next []mesh.EndpointSetKey) {
	for _, key := range next {
		if _, had := slices.BinarySearchFunc(g.sets, key, mesh.EndpointSetKey.Compare); had {
			continue
		}
		s := b.p.sets[key]
		if s == nil {
			s = &set{key: key}
			b.p.sets[key] = s
			b.set(s)
		}
		s.users++
	}
	for _, key := range g.sets {
		if _, has := slices.BinarySearchFunc(next, key, mesh.EndpointSetKey.Compare); has {
			continue
		}
		s := b.p.sets[key]
		s.users--
		if s.users == 0 {
			b.p.readBy.replace(reader{set: s}, s.reads, nil)
			delete(b.p.sets, key)
			b.update.Endpoints[envoy.EndpointsName(key)] = nil
		}
	}
	g.sets = next
}

// set computes an endpoint set again.
func (b *build) set(s *set) {
	endpoints, reads, findings := mesh.EndpointSetOf(b.p.now, s.key)
	b.p.readBy.replace(reader{set: s}, s.reads, reads)
	s.reads, s.findings = reads, findings
	made := envoy.Endpoints(endpoints)
	resource, err := encode(xds.EndpointType, made)
	if err != nil {
		s.findings = append(s.findings, refused(mesh.NodeKey(s.key.Mesh, s.key.Node), err))
		return
	}
	if s.resource != nil && s.resource.Version() == resource.Version() {
		return
	}
	s.resource = resource
	b.update.Endpoints[made.Name] = resource
}

// encode marshals what translation made. What translation took over is not marshalled again.
func (b *build) encode(g *group, made envoy.Resources) {
	var faults []error
	encode := func(typeURL string, made, last []*envoy.Resource, encoded []*xds.Resource) []*xds.Resource {
		list, err := b.resources(typeURL, made, last, encoded)
		faults = append(faults, err...)
		return list
	}
	g.encoded = xds.Config{
		Clusters:  encode(xds.ClusterType, made.Clusters, g.built.Clusters, g.encoded.Clusters),
		Listeners: encode(xds.ListenerType, made.Listeners, g.built.Listeners, g.encoded.Listeners),
		Routes:    encode(xds.RouteType, made.Routes, g.built.Routes, g.encoded.Routes),
	}
	if len(faults) == 0 {
		g.translator.Release()
		g.config = new(g.encoded)
		return
	}
	for _, err := range faults {
		g.translation = append(g.translation, refused(g.proxy, err))
	}
	missing := func(r *xds.Resource) bool { return r == nil }
	g.config = &xds.Config{
		Clusters:  slices.DeleteFunc(slices.Clone(g.encoded.Clusters), missing),
		Listeners: slices.DeleteFunc(slices.Clone(g.encoded.Listeners), missing),
		Routes:    slices.DeleteFunc(slices.Clone(g.encoded.Routes), missing),
	}
}

// resources marshals one list; encoded is what came of last, and both are sorted by name. What cannot be marshalled is nil in the result, and tried again each time.
func (b *build) resources(typeURL string, made, last []*envoy.Resource, encoded []*xds.Resource) ([]*xds.Resource, []error) {
	if slices.Equal(made, last) && !slices.Contains(encoded, nil) {
		return encoded, nil
	}
	list := make([]*xds.Resource, 0, len(made))
	var faults []error
	next := 0
	for _, r := range made {
		for next < len(last) && last[next].Name < r.Name {
			next++
		}
		if next < len(last) && last[next] == r && encoded[next] != nil {
			list = append(list, encoded[next])
			continue
		}
		resource, err := b.p.encoded.get(typeURL, r)
		if err != nil {
			faults = append(faults, err)
		}
		list = append(list, resource)
	}
	return list, faults
}

// Origin is what a resource was built from, as it travels through delivery: keys of the model, sorted.
type Origin []mesh.Key

func refused(proxy mesh.Key, err error) mesh.Finding {
	return mesh.Finding{
		Severity: mesh.SeverityError, Reason: mesh.ReasonRejected,
		Object:  mesh.Source{Kind: string(proxy.Kind), Name: proxy.Name},
		Message: fmt.Sprintf("configuration for %s cannot be encoded: %v", proxy, err),
		Mend:    "this is a fault of the control plane: report it with the objects named here",
	}
}
