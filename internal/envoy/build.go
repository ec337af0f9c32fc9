// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"maps"
	"slices"

	accesslogv3 "github.com/envoyproxy/go-control-plane/envoy/config/accesslog/v3"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Build translates a View. It never fails: what cannot be translated is left out on the safe side (503 rather than another destination), with a finding.
//
// A finding's Object names the model's object by Kind and App Mesh name, a route's virtual router as its Namespace; the caller knows which custom resource it came from.
func Build(v *mesh.View) (Resources, []mesh.Finding) {
	return newBuilder(v).build()
}

// build is the table of contents of a proxy's configuration, in the order in which the parts need each other.
func (b *builder) build() (Resources, []mesh.Finding) {
	b.egressClusters()
	b.passClusters()
	listeners := b.ingressClusters()
	b.accessLog()

	b.plan = b.planOutbound()
	b.egressRouteConfigurations()
	b.ingressRouteConfigurations(listeners)

	b.inboundListener(listeners)
	b.outboundListener()

	b.made = Resources{Clusters: b.sortedClusters(), Listeners: sorted(b.listeners), Routes: sorted(b.routes)}
	return b.made, mesh.SortFindings(b.findings)
}

// builder holds what is gathered while one View is translated.
type builder struct {
	view *mesh.View
	// mesh is the App Mesh name of the View's mesh.
	mesh   string
	nodes  map[string]*mesh.NodeView
	egress map[egressID]*egress
	// targets are the keys of egress in the order of the View.
	targets []egressID
	plan    []*portPlan
	hosts   map[hostID]*host
	log     []*accesslogv3.AccessLog
	// inline holds the endpoint sets of a configuration that stands alone; nil where a control plane delivers endpoints and routes.
	inline map[mesh.EndpointSetKey]*mesh.EndpointSet
	// last is the builder of the View before, whose parts may be taken over; nil for none.
	last     *builder
	made     Resources
	findings []mesh.Finding

	clusters  map[string]Resource
	listeners map[string]Resource
	routes    map[string]Resource
}

func newBuilder(v *mesh.View) *builder {
	b := &builder{
		view: v, mesh: v.Proxy.Mesh,
		nodes:    make(map[string]*mesh.NodeView, len(v.Nodes)),
		egress:   make(map[egressID]*egress, len(v.Nodes)),
		hosts:    make(map[hostID]*host, len(v.Services)),
		clusters: make(map[string]Resource, len(v.Nodes)+4), listeners: make(map[string]Resource, 2), routes: make(map[string]Resource, 4),
	}
	for i := range v.Nodes {
		b.nodes[v.Nodes[i].Name] = &v.Nodes[i]
	}
	return b
}

// tagged says whether the proxy's metrics need the metadata that App Mesh's extension reads.
func (b *builder) tagged() bool { return b.view.Profile.MetricsExtension || b.view.Profile.StockImage }

// add checks a resource and takes it; a refused one is left out with a finding against owner.
func (b *builder) add(into map[string]Resource, r Resource, owner mesh.Key) bool {
	if err := check(r.Message); err != nil {
		b.reject(owner, r.Name, err)
		return false
	}
	put(into, r)
	return true
}

// put takes a resource whose parts are checked.
func put(into map[string]Resource, r Resource) {
	r.Origins = unique(r.Origins, mesh.Key.Compare)
	r.Needs = unique(r.Needs, cmp.Compare[string])
	into[r.Name] = r
}

func sorted(set map[string]Resource) []Resource {
	if len(set) == 0 {
		return nil
	}
	return slices.SortedFunc(maps.Values(set), func(x, y Resource) int { return cmp.Compare(x.Name, y.Name) })
}

func unique[E comparable](list []E, compare func(E, E) int) []E {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}
