// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Parts are what the configurations of several groups of proxies have in common: clusters and virtual hosts, found again by all that they are made from. A part is kept for as long
// as the Incremental of some group holds it. The zero value is ready to use; it is not safe for concurrent use.
type Parts struct {
	passes   memo[passInput, Resource]
	clusters memo[clusterInput, cluster]
	hosts    memo[hostInput, host]
}

// Incremental translates one View after another of the same group of proxies. It gives what Build gives, and takes over every resource that a step does not change, as the same
// Resource, so that the caller need not encode it again: from the View before, and clusters also from other groups. It is not safe for concurrent use.
type Incremental struct {
	// Parts are shared with other groups; nil is none to share with.
	Parts *Parts
	last  *translated
}

// translated is what is kept of a View that was translated.
type translated struct {
	view     *mesh.View
	plan     []*portPlan
	frame    *frame
	outbound *Resource
	made     Resources
	// held keeps the clusters from being forgotten by Parts.
	held []egress
}

// Build translates the next View, which must not be changed afterwards.
func (i *Incremental) Build(v *mesh.View) (Resources, []mesh.Finding) {
	if i.Parts == nil {
		i.Parts = new(Parts)
	}
	b := newBuilder(v, i.Parts)
	if i.last != nil && sameFrame(i.last.view, v) {
		b.last = i.last
	}
	made, findings := b.build()
	i.last = &translated{view: v, plan: b.plan, frame: b.frame, outbound: b.outbound, made: made, held: b.targets}
	return made, findings
}

// Release drops the messages of those resources of the last View that no other group has. A caller that has encoded them needs them no more: it knows a resource that is taken over by its address.
func (i *Incremental) Release() {
	for _, list := range [][]*Resource{i.last.made.Clusters, i.last.made.Listeners, i.last.made.Routes} {
		for _, r := range list {
			if !r.shared {
				r.Message = nil
			}
		}
	}
}

// sameFrame says whether two Views differ in nothing but services and nodes.
func sameFrame(x, y *mesh.View) bool {
	a, b := *x, *y
	a.Services, a.Nodes, b.Services, b.Nodes = nil, nil, nil, nil
	return a.Equal(&b)
}

// sorted returns a list by name: the last one where it holds the same resources.
func sorted(list, last []*Resource) []*Resource {
	slices.SortFunc(list, func(x, y *Resource) int { return cmp.Compare(x.Name, y.Name) })
	if slices.Equal(list, last) {
		return last
	}
	return list
}

// sameOutbound says whether the outbound listener's chains and its tree are the same: HTTP services count by name alone, for their routes are not in it.
func (b *builder) sameOutbound() bool {
	return b.last != nil && b.last.outbound != nil && slices.EqualFunc(b.last.plan, b.plan, func(old, p *portPlan) bool {
		return old.port == p.port &&
			slices.EqualFunc(old.http, p.http, func(x, y claim) bool { return x.service.Name == y.service.Name }) &&
			slices.EqualFunc(old.tcp, p.tcp, claim.equal)
	})
}

// equal says whether a service answers on a port as it did.
func (c claim) equal(o claim) bool {
	return c.service.Name == o.service.Name && slices.Equal(c.service.Addresses, o.service.Addresses) &&
		(c.port == o.port || reflect.DeepEqual(c.port, o.port)) && slices.EqualFunc(c.to, o.to, func(x, y *egress) bool { return x.leadsTo() == y.leadsTo() })
}
