// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"reflect"
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Incremental translates one View after another of the same group of proxies. It gives what Build gives, and takes over from the View before every resource that a step
// does not change, as the same message, so that the caller need not encode it again. The zero value is ready to use; it is not safe for concurrent use.
type Incremental struct {
	last *builder
}

// Build translates the next View, which must not be changed afterwards.
func (i *Incremental) Build(v *mesh.View) (Resources, []mesh.Finding) {
	b := newBuilder(v)
	// Where something was found, the part that it was found in must speak again.
	if i.last != nil && len(i.last.findings) == 0 && sameFrame(i.last.view, v) {
		b.last = i.last
	}
	made, findings := b.build()
	b.last = nil
	i.last = b
	return made, findings
}

// sameFrame says whether two Views differ in nothing but services and nodes.
func sameFrame(x, y *mesh.View) bool {
	a, b := *x, *y
	a.Services, a.Nodes, b.Services, b.Nodes = nil, nil, nil, nil
	return reflect.DeepEqual(a, b)
}

// take takes a resource over from the View before, if it is the same and was there, and says whether it did.
func (b *builder) take(into map[string]Resource, name string, same bool) bool {
	if b.last == nil || !same {
		return false
	}
	for _, set := range []map[string]Resource{b.last.clusters, b.last.listeners, b.last.routes} {
		if r, ok := set[name]; ok {
			into[name] = r
			return true
		}
	}
	return false
}

// sortedClusters returns the clusters by name: the list of the View before, where it holds the same ones.
func (b *builder) sortedClusters() []Resource {
	if b.last == nil || len(b.clusters) != len(b.last.made.Clusters) {
		return sorted(b.clusters)
	}
	for i := range b.last.made.Clusters {
		if old := &b.last.made.Clusters[i]; b.clusters[old.Name].Message != old.Message {
			return sorted(b.clusters)
		}
	}
	return b.last.made.Clusters
}

// takeCluster takes over the cluster of a target, if its listener is the same.
func (b *builder) takeCluster(id egressID, e *egress) bool {
	if b.last == nil {
		return false
	}
	old := b.last.egress[id]
	same := old != nil && old.ready && old.userRetries == e.userRetries && old.name == e.name &&
		old.node.Discovery == e.node.Discovery && (*old.listener == *e.listener || reflect.DeepEqual(old.listener, e.listener))
	return b.take(b.clusters, e.name, same)
}

// takeHost takes over a virtual host, if the service's routes and their clusters are the same; nil where they are not.
func (b *builder) takeHost(c claim, domains []string) *routev3.VirtualHost {
	if b.last == nil {
		return nil
	}
	old := b.last.hosts[hostID{port: c.port.Port, service: c.service.Name}]
	if old == nil || !slices.Equal(old.message.GetDomains(), domains) || !b.sameClaim(old.claim, c) {
		return nil
	}
	return old.message
}

// sameClaim says whether a service answers on a port as it did.
func (b *builder) sameClaim(old, c claim) bool {
	if old.service.Name != c.service.Name || old.service.OwnPolicy != c.service.OwnPolicy || !reflect.DeepEqual(old.port, c.port) {
		return false
	}
	for i := range c.port.Routes {
		for _, t := range c.port.Routes[i].Targets {
			if !b.egress[b.targetID(c.service, t)].same {
				return false
			}
		}
	}
	return true
}

// sameOutbound says whether the outbound listener's chains and its tree are the same: HTTP services count by name alone, for their routes are not in it.
func (b *builder) sameOutbound() bool {
	if b.last == nil {
		return false
	}
	return slices.EqualFunc(b.last.plan, b.plan, func(old, p *portPlan) bool {
		return old.port == p.port &&
			slices.EqualFunc(old.http, p.http, func(x, y claim) bool { return x.service.Name == y.service.Name }) &&
			slices.EqualFunc(old.tcp, p.tcp, func(x, y claim) bool {
				return slices.Equal(x.service.Addresses, y.service.Addresses) && b.sameClaim(x, y)
			})
	})
}
