// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package feature_test

import (
	"context"
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	rpcstatus "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
)

// sotw is the state-of-the-world protocol.
type sotw struct {
	stream discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesClient
	// version is the last that was taken of each type, over all streams; nonce is the last of this stream.
	version, nonce map[string]string
	asked          map[string]bool
	late           []*discoveryv3.DiscoveryRequest
}

var _ wire = (*sotw)(nil)

func (s *sotw) open(ctx context.Context, p *proxy) error {
	stream, err := discoveryv3.NewAggregatedDiscoveryServiceClient(p.w.dial()).StreamAggregatedResources(ctx)
	if err != nil {
		return err
	}
	version := s.version
	if version == nil {
		version = map[string]string{}
	}
	*s = sotw{stream: stream, version: version, nonce: map[string]string{}, asked: map[string]bool{}}
	for _, kind := range []string{cds, eds, lds, rds} {
		p.mu.Lock()
		wanted := len(p.wants[kind]) > 0
		p.mu.Unlock()
		if kind == cds || version[kind] != "" || wanted {
			if err := s.ask(p, kind); err != nil {
				return err
			}
		}
	}
	return nil
}

// ask sends the names that are wanted of a type, with what is known of it.
func (s *sotw) ask(p *proxy, kind string) error {
	s.asked[kind] = true
	p.mu.Lock()
	names := slices.Clone(p.wants[kind])
	p.mu.Unlock()
	return s.stream.Send(&discoveryv3.DiscoveryRequest{
		Node: p.node, TypeUrl: urls[kind], ResourceNames: names, VersionInfo: s.version[kind], ResponseNonce: s.nonce[kind],
	})
}

func (s *sotw) receive(p *proxy) error {
	response, err := s.stream.Recv()
	if err != nil {
		return err
	}
	kind := typeOf(response.GetTypeUrl())
	got := map[string]resource{}
	whole := kind == cds || kind == lds
	p.mu.Lock()
	var removed []string
	for name := range p.held[kind] {
		removed = append(removed, name)
	}
	for _, body := range response.GetResources() {
		name, err := nameOf(body)
		if err != nil {
			p.mu.Unlock()
			return err
		}
		removed = slices.DeleteFunc(removed, func(n string) bool { return n == name })
		if last, had := p.held[kind][name]; !whole || !had || !proto.Equal(last.body, body) {
			got[name] = resource{body: body}
		}
	}
	names := slices.Clone(p.wants[kind])
	p.mu.Unlock()
	if !whole {
		removed = nil // the others stay as they are
	}
	answer := &discoveryv3.DiscoveryRequest{TypeUrl: response.GetTypeUrl(), ResourceNames: names, ResponseNonce: response.GetNonce()}
	s.nonce[kind] = response.GetNonce()
	if fault := p.apply(kind, got, removed); fault != "" {
		answer.ErrorDetail = &rpcstatus.Status{Code: int32(codes.Internal), Message: fault}
	} else {
		s.version[kind] = response.GetVersionInfo()
	}
	answer.VersionInfo = s.version[kind]
	if kind == cds {
		s.late = append(s.late, answer)
		if s.asked[eds] && len(got) > 0 {
			// Envoy asks again for endpoints whenever a cluster that has some changes.
			if err := s.ask(p, eds); err != nil {
				return err
			}
		}
	} else if err := s.stream.Send(answer); err != nil {
		return err
	}
	return p.follow()
}

func (s *sotw) release(p *proxy) error {
	for _, answer := range s.late {
		if err := s.stream.Send(answer); err != nil {
			return err
		}
	}
	s.late = nil
	if !s.asked[lds] {
		return s.ask(p, lds)
	}
	return nil
}

func (s *sotw) demand(p *proxy, kind string, _, _ []string) error { return s.ask(p, kind) }
