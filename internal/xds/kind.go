// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

// The type URLs of the resources that are delivered.
const (
	ClusterType  = typePrefix + "envoy.config.cluster.v3.Cluster"
	EndpointType = typePrefix + "envoy.config.endpoint.v3.ClusterLoadAssignment"
	ListenerType = typePrefix + "envoy.config.listener.v3.Listener"
	RouteType    = typePrefix + "envoy.config.route.v3.RouteConfiguration"

	typePrefix = "type.googleapis.com/"
)

// kind is one of the delivered types, small enough to index arrays. Their order is the order of delivery on a stream.
type kind uint8

const (
	clusters kind = iota
	endpoints
	listeners
	routes
	kinds // how many there are
)

func (k kind) typeURL() string {
	switch k {
	case clusters:
		return ClusterType
	case endpoints:
		return EndpointType
	case listeners:
		return ListenerType
	default:
		return RouteType
	}
}

// kindOf returns the kind of a type URL; false for one that is not delivered.
func kindOf(typeURL string) (kind, bool) {
	for k := range kinds {
		if k.typeURL() == typeURL {
			return k, true
		}
	}
	return 0, false
}

// whole says that the state-of-the-world protocol sends all resources of the kind in each response, and that asking for no name means all.
func (k kind) whole() bool { return k == clusters || k == listeners }
