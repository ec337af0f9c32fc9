// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import "time"

// Config is what every proxy of one group gets, endpoints excepted. The order does not matter; names are unique within each slice. The slices must not be changed once they are
// applied: an Update costs little where they are as in the one before.
type Config struct {
	Clusters  []*Resource
	Listeners []*Resource
	Routes    []*Resource
}

// Update is a change of what proxies shall have. What it does not mention stays.
//
// A proxy sees an Update as one change, delivered in an order that loses no request. So a new cluster and its endpoints belong into one
// Update, or the endpoints into an earlier one: a cluster whose endpoints are unknown is told to Envoy as a cluster that has none.
type Update struct {
	// Since is when the change arrived in the control plane; the zero time means that the latency is not measured.
	Since time.Time
	// Groups holds the whole new Config of each group that changed. A nil Config means that the group is gone: its streams end with
	// INVALID_ARGUMENT and a message.
	Groups map[string]*Config
	// Endpoints holds the ClusterLoadAssignments that changed, by name, shared by all groups. Nil means gone.
	// A proxy gets those alone that a cluster of its group names in Traits.Endpoints.
	Endpoints map[string]*Resource
}
