// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"encoding/gob"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
)

// scope is what each client gets from Tulle, so that the servers that it is compared with give out the very same resources.
type scope struct {
	Resources map[string][]byte   // marshalled Any, by key: type, name, and a number where clients have different ones under one name
	Clients   map[string][]string // keys of what a client has, by node id
}

func (s *scope) add(node string, m *discoveryv3.DeltaDiscoveryResponse) {
	for _, r := range m.GetResources() {
		raw, err := proto.Marshal(r.GetResource())
		if err != nil {
			continue // it came from the wire a moment ago
		}
		for n := 0; ; n++ {
			key := fmt.Sprint(m.GetTypeUrl(), " ", r.GetName(), " ", n)
			have, known := s.Resources[key]
			if known && string(have) != string(raw) {
				continue
			}
			s.Resources[key] = raw
			s.Clients[node] = append(s.Clients[node], key)
			break
		}
	}
}

func (s *scope) save(path string) error {
	f, err := os.Create(path) //nolint:gosec // a path in this run's own scratch directory
	if err != nil {
		return fmt.Errorf("save scope: %w", err)
	}
	if err := gob.NewEncoder(f).Encode(s); err != nil {
		return fmt.Errorf("save scope: %w", err)
	}
	if err := f.Close(); err != nil {
		return fmt.Errorf("save scope: %w", err)
	}
	return nil
}

func loadScope(path string) (*scope, error) {
	f, err := os.Open(path) //nolint:gosec // a path in this run's own scratch directory
	if err != nil {
		return nil, fmt.Errorf("load scope: %w", err)
	}
	defer func() { _ = f.Close() }()
	s := &scope{}
	if err := gob.NewDecoder(f).Decode(s); err != nil {
		return nil, fmt.Errorf("load scope: %w", err)
	}
	return s, nil
}

// split returns the type and the name in a key.
func split(key string) (typeURL, name string) {
	parts := strings.Split(key, " ")
	return parts[0], parts[1]
}

// decode returns the message under a key.
func (s *scope) decode(key string) (proto.Message, error) {
	a := new(anypb.Any)
	if err := proto.Unmarshal(s.Resources[key], a); err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	m, err := a.UnmarshalNew()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	return m, nil
}

// edit makes the change that a command asks for, "endpoint ADDRESS" or "weight N", and returns the resources that it changed, by key.
func (s *scope) edit(command string) (map[string]proto.Message, error) {
	verb, arg, _ := strings.Cut(command, " ")
	changed := map[string]proto.Message{}
	for _, key := range slices.Sorted(maps.Keys(s.Resources)) {
		typ, name := split(key)
		if verb == "endpoint" && (typ != endpointType || !strings.Contains(name, "_svc-0_")) || verb == "weight" && typ != routeType {
			continue
		}
		m, err := s.decode(key)
		if err != nil {
			return nil, err
		}
		switch m := m.(type) {
		case *endpointv3.ClusterLoadAssignment:
			if err := addEndpoint(m, arg); err != nil {
				return nil, fmt.Errorf("%s: %w", key, err)
			}
			changed[key] = m
		case *routev3.RouteConfiguration:
			if setWeight(m, arg) {
				changed[key] = m
			}
		}
	}
	if len(changed) == 0 {
		return nil, fmt.Errorf("nothing to change for %q", command)
	}
	return changed, nil
}

// addEndpoint puts one more endpoint beside the first, with another address.
func addEndpoint(m *endpointv3.ClusterLoadAssignment, address string) error {
	locality := m.GetEndpoints()[0]
	next := proto.CloneOf(locality.GetLbEndpoints()[0])
	socket := next.GetEndpoint().GetAddress().GetSocketAddress()
	if socket == nil {
		return errors.New("its first endpoint has no socket address")
	}
	socket.Address = address
	locality.LbEndpoints = append(locality.LbEndpoints, next)
	return nil
}

// setWeight changes the first weight of a route with several targets; false if there is no such route.
func setWeight(m *routev3.RouteConfiguration, weight string) bool {
	n, err := strconv.ParseUint(weight, 10, 32)
	if err != nil {
		return false
	}
	for _, host := range m.GetVirtualHosts() {
		for _, r := range host.GetRoutes() {
			if targets := r.GetRoute().GetWeightedClusters().GetClusters(); len(targets) > 1 {
				targets[0].Weight.Value = uint32(n)
				return true
			}
		}
	}
	return false
}
