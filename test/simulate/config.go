// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package simulate

import (
	"errors"
	"fmt"
	"strings"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"

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

func collect[M any](into map[string]M, list []*envoy.Resource) error {
	for _, r := range list {
		m, ok := r.Message.(M)
		if !ok {
			return fmt.Errorf("resource %q is a %T", r.Name, r.Message)
		}
		into[r.Name] = m
	}
	return nil
}

// Check finds what Envoy would take in silence and serve wrongly, or refuse as a whole: a tree that names a chain that is not there, chains of one name, a listener that names a
// route configuration that is not there, a route to a cluster that is not there, one domain in two virtual hosts.
func (c *Config) Check() error {
	var faults []error
	for _, name := range sortedKeys(c.listeners) {
		faults = append(faults, c.checkListener(c.listeners[name]))
	}
	for _, name := range sortedKeys(c.routes) {
		faults = append(faults, c.checkRoutes(c.routes[name]))
	}
	return errors.Join(faults...)
}

func (c *Config) checkListener(l *listenerv3.Listener) error {
	var faults []error
	named, there := map[string]bool{}, map[string]bool{}
	faults = append(faults, chainNames(l.GetFilterChainMatcher(), named))
	chains := l.GetFilterChains()
	if l.GetDefaultFilterChain() != nil {
		chains = append(chains, l.GetDefaultFilterChain())
	}
	for _, chain := range chains {
		if chain.GetName() == "" || there[chain.GetName()] {
			faults = append(faults, fmt.Errorf("%s: chain name %q is empty or not unique", l.GetName(), chain.GetName()))
		}
		there[chain.GetName()] = true
		faults = append(faults, c.checkChain(chain))
	}
	for name := range named {
		if !there[name] {
			faults = append(faults, fmt.Errorf("%s: no chain %q", l.GetName(), name))
		}
	}
	return errors.Join(faults...)
}

// checkChain finds names in a chain's filter that lead nowhere.
func (c *Config) checkChain(chain *listenerv3.FilterChain) error {
	for _, f := range chain.GetFilters() {
		manager := new(hcmv3.HttpConnectionManager)
		if f.GetTypedConfig().UnmarshalTo(manager) == nil {
			if name := manager.GetRds().GetRouteConfigName(); c.routes[name] == nil {
				return fmt.Errorf("chain %q: no route configuration %q", chain.GetName(), name)
			}
			continue
		}
		if _, err := c.filter(chain, &Request{}); err != nil {
			return err
		}
	}
	return nil
}

func (c *Config) checkRoutes(config *routev3.RouteConfiguration) error {
	var faults []error
	domains := map[string]bool{}
	for _, vh := range config.GetVirtualHosts() {
		for _, d := range vh.GetDomains() {
			if domains[strings.ToLower(d)] {
				faults = append(faults, fmt.Errorf("%s: domain %q twice", config.GetName(), d))
			}
			domains[strings.ToLower(d)] = true
		}
		for _, r := range vh.GetRoutes() {
			shares := map[string]uint32{}
			if one := r.GetRoute().GetCluster(); one != "" {
				shares[one] = 1
			}
			for _, w := range r.GetRoute().GetWeightedClusters().GetClusters() {
				shares[w.GetName()] = 1
			}
			if _, err := c.landing(shares); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", config.GetName(), err))
			}
		}
	}
	return errors.Join(faults...)
}
