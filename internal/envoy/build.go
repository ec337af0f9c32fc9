// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"slices"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Build translates a View. It never fails: what cannot be translated is left out on the safe side (503 rather than another destination), with a finding.
//
// A finding's Object names the model's object by Kind and App Mesh name, a route's virtual router as its Namespace; the caller knows which custom resource it came from.
func Build(v *mesh.View) (Resources, []mesh.Finding) {
	return newBuilder(v, new(Parts)).build()
}

// build is the table of contents of a proxy's configuration, in the order in which the parts need each other.
func (b *builder) build() (Resources, []mesh.Finding) {
	b.addFrame()
	b.gather()
	b.egressClusters()
	b.plan = b.planOutbound()
	b.egressRouteConfigurations()
	b.outboundListener()

	var last Resources
	if b.last != nil {
		last = b.last.made
	}
	made := Resources{Clusters: sorted(b.clusters, last.Clusters), Listeners: sorted(b.listeners, last.Listeners), Routes: sorted(b.routes, last.Routes)}
	return made, mesh.SortFindings(b.found)
}

// frame is the part of a configuration that does not depend on services and nodes.
type frame struct {
	log                         []*accesslogv3.AccessLog
	clusters, listeners, routes []*Resource
	findings                    []mesh.Finding
}

// addFrame takes over the frame of the View before, or makes one.
func (b *builder) addFrame() {
	if b.last == nil {
		b.makeFrame()
		b.frame = &frame{log: b.log, clusters: slices.Clone(b.clusters), listeners: slices.Clone(b.listeners), routes: slices.Clone(b.routes), findings: slices.Clone(b.found)}
		return
	}
	b.frame = b.last.frame
	b.log = b.frame.log
	b.clusters, b.listeners, b.routes = append(b.clusters, b.frame.clusters...), append(b.listeners, b.frame.listeners...), append(b.routes, b.frame.routes...)
	b.found = append(b.found, b.frame.findings...)
}

func (b *builder) makeFrame() {
	b.passClusters()
	listeners := b.ingressClusters()
	b.accessLog()
	b.ingressRouteConfigurations(listeners)
	b.inboundListener(listeners)
}

// builder holds what is gathered while one View is translated.
type builder struct {
	reporter
	view *mesh.View
	// mesh is the App Mesh name of the View's mesh.
	mesh  string
	parts *Parts
	// nodes are the View's, sorted by name.
	nodes []mesh.NodeView
	// claims are the services' claims to ports in the order of the View, and targets the listeners that they lead to, each once; byID finds one where there are many.
	claims  []claim
	targets []egress
	byID    map[egressID]*egress
	plan    []*portPlan
	log     []*accesslogv3.AccessLog
	frame   *frame
	// outbound is the listener; nil where Envoy would refuse it.
	outbound *Resource
	// inline holds the endpoint sets of a configuration that stands alone; nil where a control plane delivers endpoints and routes.
	inline map[mesh.EndpointSetKey]*mesh.EndpointSet
	// last is what was made of the View before, whose parts may be taken over; nil for none.
	last *translated

	clusters, listeners, routes []*Resource
}

func newBuilder(v *mesh.View, parts *Parts) *builder {
	b := &builder{view: v, mesh: v.Proxy.Mesh, parts: parts, nodes: v.Nodes, clusters: make([]*Resource, 0, len(v.Nodes)+4)}
	byName := func(x, y mesh.NodeView) int { return cmp.Compare(x.Name, y.Name) }
	if !slices.IsSortedFunc(v.Nodes, byName) {
		b.nodes = slices.SortedStableFunc(slices.Values(v.Nodes), byName)
	}
	return b
}

// tagged says whether the proxy's metrics need the metadata that App Mesh's extension reads.
func (b *builder) tagged() bool { return b.view.Profile.MetricsExtension || b.view.Profile.StockImage }

// add appends a resource that Envoy's own rules allow, and says whether they do.
func (p *reporter) add(list *[]*Resource, r *Resource, owner mesh.Key) bool {
	if r = p.checked(r, owner); r != nil {
		*list = append(*list, r)
	}
	return r != nil
}

// checked returns a resource that Envoy's own rules allow; nil for a refused one, with a finding against owner.
func (p *reporter) checked(r *Resource, owner mesh.Key) *Resource {
	if err := check(r.Message); err != nil {
		p.reject(owner, r.Name, err)
		return nil
	}
	r.Origins = unique(r.Origins, mesh.Key.Compare)
	r.Needs = unique(r.Needs, cmp.Compare[string])
	return r
}

func unique[E comparable](list []E, compare func(E, E) int) []E {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}
