// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"cmp"
	"context"
	"maps"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// delivery is Tulle's server alone, without files, model and translation: it shows which part of the cost is delivery's.
type delivery struct {
	scope  *scope
	server *xds.Server
	made   map[string]*xds.Resource // by key
}

var _ xds.Director = (*delivery)(nil)

func newDelivery(s *scope) (*delivery, error) {
	d := &delivery{scope: s, made: map[string]*xds.Resource{}}
	d.server = xds.New(xds.Options{Director: d, Clock: clock.Real{}})
	for key := range s.Resources {
		m, err := s.decode(key)
		if err != nil {
			return nil, err
		}
		var t xds.Traits
		if c, ok := m.(*clusterv3.Cluster); ok && c.GetType() == clusterv3.Cluster_EDS {
			t.Endpoints = cmp.Or(c.GetEdsClusterConfig().GetServiceName(), c.GetName())
		}
		_, name := split(key)
		if d.made[key], err = xds.NewResource(name, m, t); err != nil {
			return nil, err
		}
	}
	u := xds.Update{Groups: map[string]*xds.Config{}, Endpoints: map[string]*xds.Resource{}}
	for key, r := range d.made {
		if typ, name := split(key); typ == endpointType {
			u.Endpoints[name] = r
		}
	}
	for node := range s.Clients {
		u.Groups[node] = d.config(node)
	}
	d.server.Apply(u)
	return d, nil
}

// apply makes a change, and hands on all that it touches.
func (d *delivery) apply(command string) error {
	changed, err := d.scope.edit(command)
	if err != nil {
		return err
	}
	u := xds.Update{Since: clock.Real{}.Now(), Groups: map[string]*xds.Config{}, Endpoints: map[string]*xds.Resource{}}
	for _, key := range slices.Sorted(maps.Keys(changed)) {
		typ, name := split(key)
		r, err := xds.NewResource(name, changed[key], d.made[key].Traits)
		if err != nil {
			return err
		}
		d.made[key] = r
		if typ == endpointType {
			u.Endpoints[name] = r
		}
	}
	if len(u.Endpoints) == 0 {
		for node, keys := range d.scope.Clients {
			if slices.ContainsFunc(keys, func(k string) bool { return changed[k] != nil }) {
				u.Groups[node] = d.config(node)
			}
		}
	}
	d.server.Apply(u)
	return nil
}

// config is what one client gets.
func (d *delivery) config(node string) *xds.Config {
	c := &xds.Config{}
	for _, key := range d.scope.Clients[node] {
		r := d.made[key]
		switch typ, _ := split(key); typ {
		case clusterType:
			c.Clusters = append(c.Clusters, r)
		case listenerType:
			c.Listeners = append(c.Listeners, r)
		case routeType:
			c.Routes = append(c.Routes, r)
		}
	}
	return c
}

// Join puts each client into a group of its own, as Tulle does with virtual nodes that have one proxy each.
func (d *delivery) Join(_ context.Context, p xds.Proxy) (string, error) {
	if d.scope.Clients[p.NodeID] == nil {
		return "", status.Errorf(codes.InvalidArgument, "no client is named %q", p.NodeID)
	}
	return p.NodeID, nil
}

// Leave does nothing: the groups stay.
func (d *delivery) Leave(string) {}
