// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import "time"

// ProxyStatus is what one connected proxy has, for people and for the conditions of the objects that its resources were built from.
type ProxyStatus struct {
	Proxy Proxy
	Group string
	Since time.Time // when it connected
	Types []TypeStatus
}

// TypeStatus is the state of one type on one stream. A type that the client never asked for is left out.
type TypeStatus struct {
	TypeURL string
	// Pending is how many names wait to be sent; Unacked is how many responses the client has not answered.
	Pending int
	Unacked int
	// Resources are those that the client was sent or said it has, sorted by name.
	Resources []ResourceStatus
	// LastNack is the text of the last refusal on this stream, and NackedAt its time; "" if there was none.
	LastNack string
	NackedAt time.Time
}

// ResourceStatus is one resource on one stream.
type ResourceStatus struct {
	Name string
	// Version is the last that was sent, or that the client said it has.
	Version string
	// Acked says that the client took this version.
	Acked bool
	// Refused is the client's error text if it refused this version, else "".
	Refused string
	// Origin is the Traits.Origin of this version; nil if the client brought the version from an earlier stream.
	Origin any
}
