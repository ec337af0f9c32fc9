// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package feature_test

import (
	"context"
	"maps"
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
)

// delta is the incremental protocol.
type delta struct {
	stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient
	// asked holds the types that the stream has asked for.
	asked map[string]bool
	// late are answers to cluster responses that wait until the clusters are warm.
	late []*discoveryv3.DeltaDiscoveryRequest
}

var _ wire = (*delta)(nil)

func (d *delta) open(ctx context.Context, p *proxy) error {
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(p.w.dial()).DeltaAggregatedResources(ctx)
	if err != nil {
		return err
	}
	*d = delta{stream: stream, asked: map[string]bool{}}
	// A proxy that comes back asks for all it had in one burst.
	for _, kind := range []string{cds, eds, lds, rds} {
		p.mu.Lock()
		known := len(p.held[kind])
		wants := slices.Clone(p.wants[kind])
		p.mu.Unlock()
		if kind != cds && known == 0 && len(wants) == 0 {
			continue
		}
		if err := d.ask(p, kind, wants); err != nil {
			return err
		}
	}
	return nil
}

// ask sends the first request of a type. Clusters and listeners are asked for without a name.
func (d *delta) ask(p *proxy, kind string, names []string) error {
	d.asked[kind] = true
	p.mu.Lock()
	known := map[string]string{}
	for name, r := range p.held[kind] {
		known[name] = r.version
	}
	p.mu.Unlock()
	return d.stream.Send(&discoveryv3.DeltaDiscoveryRequest{
		Node: p.node, TypeUrl: urls[kind], ResourceNamesSubscribe: names, InitialResourceVersions: known,
	})
}

func (d *delta) receive(p *proxy) error {
	response, err := d.stream.Recv()
	if err != nil {
		return err
	}
	kind := typeOf(response.GetTypeUrl())
	got := map[string]resource{}
	for _, r := range response.GetResources() {
		got[r.GetName()] = resource{version: r.GetVersion(), body: r.GetResource()}
	}
	answer := &discoveryv3.DeltaDiscoveryRequest{TypeUrl: response.GetTypeUrl(), ResponseNonce: response.GetNonce()}
	if fault := p.apply(kind, got, response.GetRemovedResources()); fault != "" {
		answer.ErrorDetail = &rpcstatus.Status{Code: int32(codes.Internal), Message: fault}
	}
	if kind == cds {
		d.late = append(d.late, answer)
	} else if err := d.stream.Send(answer); err != nil {
		return err
	}
	return p.follow()
}

func (d *delta) release(p *proxy) error {
	for _, answer := range d.late {
		if err := d.stream.Send(answer); err != nil {
			return err
		}
	}
	d.late = nil
	if !d.asked[lds] {
		return d.ask(p, lds, nil)
	}
	return nil
}

func (d *delta) demand(p *proxy, kind string, added, gone []string) error {
	if !d.asked[kind] {
		p.mu.Lock()
		all := slices.Clone(p.wants[kind])
		p.mu.Unlock()
		return d.ask(p, kind, all)
	}
	return d.stream.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: urls[kind], ResourceNamesSubscribe: added, ResourceNamesUnsubscribe: gone})
}

// wires are both protocols, by name.
func wires() map[string]func() wire {
	return map[string]func() wire{
		"delta":              func() wire { return new(delta) },
		"state of the world": func() wire { return new(sotw) },
	}
}

func wireNames() []string { return slices.Sorted(maps.Keys(wires())) }
