// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// floor does the least that a server can do: it knows beforehand what each client gets, and fans one resource that is marshalled once out to those
// that have it. It keeps no versions and looks at no answer.
type floor struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer

	scope  *scope
	routes []string // keys of the routes that a weight changes

	mu      sync.Mutex
	version int
	ready   map[string]*discoveryv3.Resource // by key
	streams map[*floorStream]struct{}
}

type floorStream struct {
	keys map[string]string // by type and name
	out  chan *discoveryv3.DeltaDiscoveryResponse
}

func newFloor(s *scope) (*floor, error) {
	f := &floor{scope: s, ready: map[string]*discoveryv3.Resource{}, streams: map[*floorStream]struct{}{}}
	for key := range s.Resources {
		m, err := s.decode(key)
		if err != nil {
			return nil, err
		}
		if f.ready[key], err = pack(key, m); err != nil {
			return nil, err
		}
	}
	weights, err := s.edit("weight 1")
	if err != nil {
		return nil, err
	}
	f.routes = slices.Sorted(maps.Keys(weights))
	return f, nil
}

// pack marshals a resource for good.
func pack(key string, m proto.Message) (*discoveryv3.Resource, error) {
	a, err := anypb.New(m)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	_, name := split(key)
	return &discoveryv3.Resource{Name: name, Version: "0123456789ab", Resource: a}, nil // as long as Tulle's versions
}

// apply makes a change and fans it out. The routes of each client are its own, so for a weight the floor sends the bytes that it has again: to
// change them first would be more than the least.
func (f *floor) apply(command string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	changed := f.routes
	if !strings.HasPrefix(command, "weight ") {
		edited, err := f.scope.edit(command)
		if err != nil {
			return err
		}
		changed = slices.Collect(maps.Keys(edited))
		for key, m := range edited {
			if f.ready[key], err = pack(key, m); err != nil {
				return err
			}
		}
	}
	f.version++
	version := strconv.Itoa(f.version)
	for _, key := range changed {
		typ, name := split(key)
		resp := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: typ, Nonce: version, Resources: []*discoveryv3.Resource{f.ready[key]}}
		for s := range f.streams {
			if s.keys[typ+" "+name] == key {
				s.out <- resp
			}
		}
	}
	return nil
}

// DeltaAggregatedResources answers the requests of one client and passes changes on to it.
func (f *floor) DeltaAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	s := &floorStream{out: make(chan *discoveryv3.DeltaDiscoveryResponse, 64)}
	defer func() {
		f.mu.Lock()
		delete(f.streams, s)
		f.mu.Unlock()
	}()
	go func() {
		defer close(s.out)
		for {
			r, err := stream.Recv()
			if err != nil {
				return
			}
			if r.GetResponseNonce() == "" {
				f.answer(s, r)
			}
		}
	}()
	for resp := range s.out {
		if err := stream.Send(resp); err != nil {
			return err
		}
	}
	return nil
}

// answer sends what is asked for: one response with everything of the type.
func (f *floor) answer(s *floorStream, r *discoveryv3.DeltaDiscoveryRequest) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.keys == nil {
		s.keys = map[string]string{}
		for _, key := range f.scope.Clients[r.GetNode().GetId()] {
			typ, name := split(key)
			s.keys[typ+" "+name] = key
		}
		f.streams[s] = struct{}{}
	}
	resp := &discoveryv3.DeltaDiscoveryResponse{TypeUrl: r.GetTypeUrl(), Nonce: "first"}
	for short, key := range s.keys {
		if typ, _ := split(short); typ == r.GetTypeUrl() {
			resp.Resources = append(resp.Resources, f.ready[key])
		}
	}
	s.out <- resp
}
