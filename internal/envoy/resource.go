// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package envoy translates what one proxy may know (mesh.View, mesh.EndpointSet) into Envoy's listeners, route configurations, clusters and load assignments.
// Its functions are pure: they read their arguments alone and give equal results for equal arguments. The control loop and the command line may call it.
package envoy

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Resources is the configuration of one group of proxies, endpoints apart. Each list is sorted by name, and each name is in it once.
type Resources struct {
	Clusters  []*Resource
	Listeners []*Resource
	// Routes are route configurations.
	Routes []*Resource
}

// Resource is one named resource of Envoy's API. It must not be changed: configurations share resources, and resources share parts.
type Resource struct {
	Name string
	// Message is nil once Incremental.Release has dropped it.
	Message proto.Message
	// Origins are the objects of the model that the resource was built from, sorted, each once.
	Origins []mesh.Key
	// Endpoints is, for a cluster that takes its endpoints from the control plane, the name of its load assignment; empty for all others.
	Endpoints string
	// Warms says of a cluster that it checks endpoints actively, so that a new one serves only after its first round of checks.
	Warms bool
	// Needs are the clusters that a listener or route configuration names, sorted, each once.
	Needs []string
	// hosts are the virtual hosts, which are encoded already, of a route configuration that is made of nothing else.
	hosts []*host
	// shared says that other groups may have the resource.
	shared bool
	// findings are those that were made with it.
	findings []mesh.Finding
}

// Encode returns the message's deterministic encoding, in pieces that follow each other and must not be changed.
func (r *Resource) Encode() ([][]byte, error) {
	if r.hosts != nil {
		return encodeRoutes(r.Name, r.hosts), nil
	}
	if r.Message == nil {
		return nil, fmt.Errorf("the message of %s is released", r.Name)
	}
	whole, err := proto.MarshalOptions{Deterministic: true}.Marshal(r.Message)
	if err != nil {
		return nil, fmt.Errorf("marshal %s: %w", r.Name, err)
	}
	return [][]byte{whole}, nil
}
