// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"slices"
	"time"

	xdsmatcherv3 "github.com/cncf/xds/go/xds/type/matcher/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// serverNameWait is how long the outbound listener waits on tlsPort for a client that says nothing, before it goes on without a server name.
const serverNameWait = time.Second

// newListener makes what never changes of a listener. Envoy drains all connections of a listener when any of its own fields changes; filter chains, and the tree that
// chooses among them, may change.
func (b *builder) newListener(name string, port int32, direction corev3.TrafficDirection) *listenerv3.Listener {
	l := &listenerv3.Listener{
		Name: name,
		// The name of its statistics does not follow the address family.
		StatPrefix:       "0.0.0.0_" + portText(port),
		Address:          socket("0.0.0.0", port),
		TrafficDirection: direction,
		ListenerFilters:  []*listenerv3.ListenerFilter{constants().originalDst},
	}
	if b.bothFamilies() {
		l.Address = socket("::", port)
		l.Address.GetSocketAddress().Ipv4Compat = true
	}
	if b.tagged() {
		l.Metadata = listenerMetadata()
	}
	return l
}

// bothFamilies says whether listeners take IPv6 too. For a proxy that says what its host has, that is constant for life; AWS's own image does not say, and there the preference decides, as it
// did in App Mesh.
func (b *builder) bothFamilies() bool {
	return b.view.Profile.IPv6 || b.view.Profile.StockImage && b.view.IPPreference != ""
}

// inboundListener takes what comes to the workload. A proxy without listeners has none.
func (b *builder) inboundListener(listeners []*mesh.Listener) {
	if len(listeners) == 0 {
		return
	}
	l := b.newListener(inboundListener, inboundPort, corev3.TrafficDirection_INBOUND)
	r := &Resource{Name: l.GetName(), Message: l, Origins: []mesh.Key{b.view.Proxy}}
	p := &packer{}
	ports := make(map[string]*onMatch, len(listeners))
	for _, in := range listeners {
		name := ingressChain(in.PortMapping)
		filter, needs := b.ingressFilter(in)
		l.FilterChains = append(l.FilterChains, chainOf(name, filter))
		ports[portText(in.PortMapping.Port)] = p.chain(name)
		r.Needs = append(r.Needs, needs...)
	}
	if r = b.finishListener(r, l, p, exact(constants().portInput, ports, nil)); r != nil {
		b.listeners = append(b.listeners, r)
	}
}

// outboundListener takes what the workload sends. The one of the View before is taken over, with what was found in it, where nothing in it differs.
func (b *builder) outboundListener() {
	if b.sameOutbound() {
		b.outbound = b.last.outbound
		b.found = append(b.found, b.outbound.findings...)
	} else {
		before := len(b.found)
		if b.outbound = b.newOutbound(); b.outbound == nil {
			return
		}
		b.outbound.findings = slices.Clone(b.found[before:])
	}
	b.listeners = append(b.listeners, b.outbound)
}

func (b *builder) newOutbound() *Resource {
	l := b.newListener(outboundListener, outboundPort, corev3.TrafficDirection_OUTBOUND)
	l.ListenerFilters = append(l.ListenerFilters, constants().tlsInspector)
	l.ListenerFiltersTimeout = durationpb.New(serverNameWait)
	l.ContinueOnListenerFiltersTimeout = true
	r := &Resource{Name: l.GetName(), Message: l, Origins: []mesh.Key{b.view.Proxy}}

	for _, one := range b.plan {
		if len(one.http) > 0 {
			l.FilterChains = append(l.FilterChains, chainOf(httpChain(one.port), b.egressHTTPFilter(one.port)))
			for _, c := range one.http {
				r.Origins = append(r.Origins, mesh.VirtualServiceKey(b.mesh, c.service.Name))
			}
		}
		for _, c := range one.tcp {
			filter, needs := b.egressTCPFilter(c)
			l.FilterChains = append(l.FilterChains, chainOf(tcpChain(c.service.Name, one.port), filter))
			r.Needs = append(r.Needs, needs...)
			r.Origins = append(r.Origins, claimOrigins(b.mesh, c)...)
		}
	}
	l.FilterChains = append(l.FilterChains, chainOf(awsChain, b.passFilter(awsName(b.mesh))), chainOf(closedChain, constants().closeFilter))
	r.Needs = append(r.Needs, awsName(b.mesh))
	if b.allowsAll() {
		l.DefaultFilterChain = chainOf(passChain, b.passFilter(passName(b.mesh)))
		r.Needs = append(r.Needs, passName(b.mesh))
	}
	p := &packer{}
	return b.finishListener(r, l, p, p.outboundTree(b.plan))
}

// finishListener completes a listener with the tree that chooses among its chains; nil for one that Envoy would refuse.
func (b *builder) finishListener(r *Resource, l *listenerv3.Listener, p *packer, tree *xdsmatcherv3.Matcher) *Resource {
	l.FilterChainMatcher = tree
	if err := p.err(); err != nil {
		b.reject(b.view.Proxy, r.Name, err)
		return nil
	}
	return b.checked(r, b.view.Proxy)
}

func chainOf(name string, filter *listenerv3.Filter) *listenerv3.FilterChain {
	return &listenerv3.FilterChain{Name: name, Filters: []*listenerv3.Filter{filter}}
}
