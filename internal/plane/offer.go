// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package plane

import (
	"slices"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// offer is what all callers of a virtual service share of their Views, kept while a group has the service as backend, so that a change of it is computed once for all of them.
type offer struct {
	// key is the virtual service's.
	key      mesh.Key
	users    map[*group]struct{}
	reads    []mesh.Key
	findings []mesh.Finding
	made     *mesh.Offer
}

func compareOffers(x, y *offer) int { return x.key.Compare(y.key) }

// offerOf returns the offer of a virtual service, which is made where nobody had it.
func (b *build) offerOf(key mesh.Key) *offer {
	o := b.p.offers[key]
	if o == nil {
		o = &offer{key: key, users: map[*group]struct{}{}}
		b.p.offers[key] = o
		b.offer(o)
	}
	return o
}

// offer computes an offer again and says whether it differs.
func (b *build) offer(o *offer) bool {
	made, reads, findings := mesh.OfferOf(b.p.now, o.key)
	b.p.readBy.replace(reader{offer: o}, o.reads, reads)
	o.reads, o.findings = reads, findings
	last := o.made
	o.made = made.Since(last)
	return o.made != last
}

// useOffers makes g a user of exactly the offers of next, which are sorted.
func (p *Plane) useOffers(g *group, next []*offer) {
	if slices.Equal(g.offers, next) {
		return
	}
	for _, o := range next {
		o.users[g] = struct{}{}
	}
	for _, o := range g.offers {
		if _, has := slices.BinarySearchFunc(next, o, compareOffers); has {
			continue
		}
		delete(o.users, g)
		if len(o.users) == 0 {
			p.readBy.replace(reader{offer: o}, o.reads, nil)
			delete(p.offers, o.key)
		}
	}
	g.offers = next
}
