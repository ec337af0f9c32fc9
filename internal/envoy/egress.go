// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// egressID names a listener of a node under one client policy: that of service, or the proxy's own where service is empty.
type egressID struct {
	node    string
	port    int32
	service string
}

// egress is a listener of a node that some route leads to.
type egress struct {
	id egressID
	// node and listener are nil where there is no such node, or no such listener of it.
	node     *mesh.NodeView
	listener *mesh.NodeListenerView
	// userRetries is set where a route with a retry policy of the user's leads here. Envoy lets a cluster's policy win over a route's, so the cluster then has none.
	userRetries bool
	// part is the cluster, and ready is set once it stands.
	part  *cluster
	ready bool
}

// leadsTo is the name of the cluster where it stands, and otherwise empty.
func (e *egress) leadsTo() string {
	if !e.ready {
		return ""
	}
	return e.part.name
}

// gather notes the services' claims and the listeners that their routes lead to.
func (b *builder) gather() {
	claims, targets := 0, 0
	for i := range b.view.Services {
		for j := range b.view.Services[i].Ports {
			claims++
			for k := range b.view.Services[i].Ports[j].Routes {
				targets += len(b.view.Services[i].Ports[j].Routes[k].Targets)
			}
		}
	}
	b.claims = make([]claim, 0, claims)
	b.targets = make([]egress, 0, targets) // never grows, for it is pointed into
	if targets > few {
		b.byID = make(map[egressID]*egress, targets)
	}
	to := make([]*egress, 0, targets)
	for i := range b.view.Services {
		s := &b.view.Services[i]
		for j := range s.Ports {
			first := len(to)
			for k := range s.Ports[j].Routes {
				to = b.gatherRoute(to, s, &s.Ports[j].Routes[k])
			}
			b.claims = append(b.claims, claim{service: s, port: &s.Ports[j], to: to[first:]})
		}
	}
}

// gatherRoute appends the listeners that a route leads to.
func (b *builder) gatherRoute(to []*egress, s *mesh.ServiceView, r *mesh.RouteView) []*egress {
	for _, t := range r.Targets {
		id := egressID{node: t.Node, port: t.Port}
		if s.OwnPolicy {
			id.service = s.Name
		}
		e := b.known(id)
		if e == nil {
			e = b.newEgress(id)
			if e.node == nil {
				b.report(mesh.ReasonRefNotFound, r.Route, mesh.Finding{
					Value:   t.Node,
					Message: fmt.Sprintf("no virtual node %q with a listener on port %d, so the target gets no requests", clip(t.Node), t.Port),
					Mend:    "create the node, or name one of its listeners",
				})
			}
		}
		if r.Retry != nil && !r.TCP {
			e.userRetries = true
		}
		to = append(to, e)
	}
	return to
}

// few is how many targets are looked through faster than they are put into a map.
const few = 32

// known finds a target that was gathered already.
func (b *builder) known(id egressID) *egress {
	if b.byID != nil {
		return b.byID[id]
	}
	for i := range b.targets {
		if b.targets[i].id == id {
			return &b.targets[i]
		}
	}
	return nil
}

func (b *builder) newEgress(id egressID) *egress {
	b.targets = append(b.targets, egress{id: id})
	e := &b.targets[len(b.targets)-1]
	if b.byID != nil {
		b.byID[id] = e
	}
	if n, ok := slices.BinarySearchFunc(b.nodes, id.node, func(n mesh.NodeView, name string) int { return cmp.Compare(n.Name, name) }); ok {
		node := &b.nodes[n]
		for i := range node.Listeners {
			if l := &node.Listeners[i]; l.Port == id.port {
				e.node, e.listener = node, l
				break
			}
		}
	}
	return e
}

// egressClusters makes the clusters of all targets, those of weight 0 too, so that a later weight needs no new cluster.
func (b *builder) egressClusters() {
	byName := make([]*egress, 0, len(b.targets))
	for i := range b.targets {
		if e := &b.targets[i]; e.node != nil {
			e.part = b.cluster(e)
			byName = append(byName, e)
		}
	}
	// Of two listeners with one name the first in the order of the View has it.
	slices.SortStableFunc(byName, func(x, y *egress) int { return cmp.Compare(x.part.name, y.part.name) })
	var owner *egress
	for _, e := range byName {
		if owner != nil && owner.part.name == e.part.name {
			b.reject(mesh.NodeKey(b.mesh, e.id.node), e.part.name, fmt.Errorf("node %q has a listener under this name already", owner.id.node))
			continue
		}
		owner = e
		b.found = append(b.found, e.part.findings...)
		if e.ready = e.part.resource != nil; e.ready {
			b.clusters = append(b.clusters, e.part.resource)
		}
	}
}
