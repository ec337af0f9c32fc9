// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"encoding/json"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	"google.golang.org/protobuf/types/known/structpb"
)

// aggregateStats is the key under which App Mesh's metrics module looks for the tags of what it counts.
const aggregateStats = "aws.appmesh.aggregate_stats"

// nodeMetadata tells the metrics module which node a cluster is.
func nodeMetadata(node string) *corev3.Metadata { return tags("TargetVirtualNode", node) }

// serviceMetadata tells the metrics module which service a route belongs to.
func serviceMetadata(service string) *corev3.Metadata { return tags("TargetVirtualService", service) }

// listenerMetadata tells the metrics module that a listener has no tags of its own.
func listenerMetadata() *corev3.Metadata { return statsConfig(`{"tags":[]}`) }

// tags is a metrics module's configuration of one tag, as JSON in a string.
func tags(key, value string) *corev3.Metadata {
	quoted, err := json.Marshal(value)
	if err != nil {
		return nil // a string always marshals
	}
	return statsConfig(`{"tags":[{"key":"` + key + `","value":` + string(quoted) + `}]}`)
}

func statsConfig(config string) *corev3.Metadata {
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{
		aggregateStats: {Fields: map[string]*structpb.Value{"config": structpb.NewStringValue(config)}},
	}}
}
