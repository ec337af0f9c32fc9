// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"slices"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// requestTimeout is the API's default limit of a request, with all its retries, where a route says nothing.
const requestTimeout = 15 * time.Second

// unavailable answers 503 without asking anybody.
func unavailable() *routev3.Route_DirectResponse {
	return &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 503}}
}

// refusal answers 503 to everything that a match takes.
func refusal(m *routev3.RouteMatch) *routev3.Route {
	return &routev3.Route{Match: m, Action: unavailable()}
}

// route translates one route of a service, of which to are the targets. Where its match cannot be had, the requests that it may have meant get 503, so that they reach no other route.
func (h *hostMaker) route(r *mesh.RouteView, to []*egress) *routev3.Route {
	match, err := routeMatch(r)
	out := refusal(match)
	if err != nil {
		return h.refuse(r, out, err)
	}
	h.forward(out, r, to)
	return out
}

// refuse reports a route that Envoy would not take, and answers 503 to what its path matches, or to everything where that is wrong too.
func (h *hostMaker) refuse(r *mesh.RouteView, out *routev3.Route, err error) *routev3.Route {
	h.reject(r.Route, "the route", err)
	if path := (&routev3.RouteMatch{PathSpecifier: out.GetMatch().GetPathSpecifier()}); check(path) == nil {
		return refusal(path)
	}
	return refusal(everything())
}

// forward sends a route's requests to its targets; without any the route keeps answering 503.
func (h *hostMaker) forward(out *routev3.Route, r *mesh.RouteView, to []*egress) {
	shares := sharesOf(r.Targets, to)
	if len(shares) == 0 {
		return
	}
	action := &routev3.RouteAction{Timeout: span(r.DefaultTimeout.Or(requestTimeout))}
	if t := r.Timeout; t != nil {
		action.Timeout = span(t.PerRequest.Or(r.DefaultTimeout.Or(requestTimeout)))
		if t.Idle != nil {
			action.IdleTimeout = span(t.Idle.Span())
		}
	}
	if len(shares) == 1 {
		action.ClusterSpecifier = &routev3.RouteAction_Cluster{Cluster: shares[0].to.name}
	} else {
		weighted := &routev3.WeightedCluster{Clusters: make([]*routev3.WeightedCluster_ClusterWeight, 0, len(shares))}
		for _, share := range shares {
			weighted.Clusters = append(weighted.Clusters, &routev3.WeightedCluster_ClusterWeight{Name: share.to.name, Weight: count(share.weight)})
		}
		action.ClusterSpecifier = &routev3.RouteAction_WeightedClusters{WeightedClusters: weighted}
	}
	switch {
	case r.Retry != nil:
		action.RetryPolicy = retryPolicy(r.Retry)
	case slices.ContainsFunc(shares, func(s share) bool { return !s.to.retries }):
		// One of the clusters does not carry the default policy, so the route must.
		action.RetryPolicy = constants().defaultRetry
	}
	out.Action = &routev3.Route_Route{Route: action}
	if h.tagged {
		out.Metadata = serviceMetadata(h.service)
	}
}

// share is the part of a route's requests, or of a TCP route's connections, that a cluster gets.
type share struct {
	to     *cluster
	weight uint32
}

// sharesOf are the targets that stand and have a weight, in the user's order; to are their listeners. Their weights have a sum that Envoy takes.
func sharesOf(targets []mesh.TargetView, to []*egress) []share {
	out := make([]share, 0, len(targets))
	var sum uint64
	for i, t := range targets {
		if t.Weight <= 0 || !to[i].ready {
			continue
		}
		out = append(out, share{to: to[i].part, weight: uint32(t.Weight)})
		sum += uint64(t.Weight)
	}
	for ; sum > 1<<32-1; sum = total(out) {
		for i := range out {
			out[i].weight = max(out[i].weight/2, 1)
		}
	}
	return out
}

func total(shares []share) uint64 {
	var sum uint64
	for _, share := range shares {
		sum += uint64(share.weight)
	}
	return sum
}
