// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package simulate

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tulle-mesh/tulle/internal/envoy"
)

// Config is the configuration of one proxy, by name.
type Config struct {
	listeners map[string]*listenerv3.Listener
	routes    map[string]*routev3.RouteConfiguration
	clusters  map[string]*clusterv3.Cluster
}

// NewConfig takes what translation made.
func NewConfig(made envoy.Resources) (*Config, error) {
	c := &Config{listeners: map[string]*listenerv3.Listener{}, routes: map[string]*routev3.RouteConfiguration{}, clusters: map[string]*clusterv3.Cluster{}}
	if err := collect(c.listeners, made.Listeners); err != nil {
		return nil, err
	}
	if err := collect(c.routes, made.Routes); err != nil {
		return nil, err
	}
	return c, collect(c.clusters, made.Clusters)
}

func collect[M any](into map[string]M, list []envoy.Resource) error {
	for _, r := range list {
		m, ok := r.Message.(M)
		if !ok {
			return fmt.Errorf("resource %q is a %T", r.Name, r.Message)
		}
		into[r.Name] = m
	}
	return nil
}
