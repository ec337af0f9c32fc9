// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"slices"

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
	b.gather()
	b.egressClusters()
	b.passClusters()
	listeners := b.ingressClusters()
	b.accessLog()

	b.plan = b.planOutbound()
	b.egressRouteConfigurations()
	b.ingressRouteConfigurations(listeners)

	b.inboundListener(listeners)
	b.outboundListener()

	last := b.lastMade()
	made := Resources{Clusters: sorted(b.clusters, last.Clusters), Listeners: sorted(b.listeners, last.Listeners), Routes: sorted(b.routes, last.Routes)}
	return made, mesh.SortFindings(b.found)
}

// builder holds what is gathered while one View is translated.
type builder struct {
	reporter
	view *mesh.View
	// mesh is the App Mesh name of the View's mesh.
	mesh  string
	parts *Parts
	nodes map[string]*mesh.NodeView
	// claims are the services' claims to ports in the order of the View, and targets the listeners that they lead to, each once.
	claims  []claim
	targets []*egress
	plan    []*portPlan
	log     accessLog
	// inline holds the endpoint sets of a configuration that stands alone; nil where a control plane delivers endpoints and routes.
	inline map[mesh.EndpointSetKey]*mesh.EndpointSet
	// last is what was made of the View before, whose parts may be taken over; nil for none.
	last *translated

	clusters, listeners, routes []*Resource
}

func newBuilder(v *mesh.View, parts *Parts) *builder {
	b := &builder{
		view: v, mesh: v.Proxy.Mesh, parts: parts,
		nodes:    make(map[string]*mesh.NodeView, len(v.Nodes)),
		clusters: make([]*Resource, 0, len(v.Nodes)+4),
	}
	for i := range v.Nodes {
		b.nodes[v.Nodes[i].Name] = &v.Nodes[i]
	}
	return b
}

// tagged says whether the proxy's metrics need the metadata that App Mesh's extension reads.
func (b *builder) tagged() bool { return b.view.Profile.MetricsExtension || b.view.Profile.StockImage }

// checked returns a resource that Envoy's own rules allow; a refused one is left out with a finding against owner.
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
