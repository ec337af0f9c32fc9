// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package envoy translates what one proxy may know (mesh.View, mesh.EndpointSet) into Envoy's listeners, route configurations, clusters and load assignments.
// Its functions are pure: they read their arguments alone and give equal results for equal arguments. The control loop and the command line may call it.
package envoy

import (
	"google.golang.org/protobuf/proto"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Resources is the configuration of one group of proxies, endpoints apart. Each list is sorted by name, and each name is in it once.
type Resources struct {
	Clusters  []Resource
	Listeners []Resource
	// Routes are route configurations.
	Routes []Resource
}

// Resource is one named resource of Envoy's API. Its message must not be changed: resources share parts.
type Resource struct {
	Name    string
	Message proto.Message
	// Origins are the objects of the model that the resource was built from, sorted, each once.
	Origins []mesh.Key
	// Endpoints is, for a cluster that takes its endpoints from the control plane, the name of its load assignment; empty for all others.
	Endpoints string
	// Warms says of a cluster that it checks endpoints actively, so that a new one serves only after its first round of checks.
	Warms bool
	// Needs are the clusters that a listener or route configuration names, sorted, each once.
	Needs []string
}
