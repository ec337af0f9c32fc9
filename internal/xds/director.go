// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"context"
	"time"

	"google.golang.org/protobuf/types/known/structpb"
)

// Proxy is one connected client, as its first request described it. Nothing in it is proved but Identity.
type Proxy struct {
	// ID is unique for each stream of this server.
	ID uint64 `json:"id"`
	// NodeID, Cluster and Metadata are the node's own words; Metadata may be nil and must not be changed.
	NodeID   string           `json:"nodeId,omitempty"`
	Cluster  string           `json:"cluster,omitempty"`
	Metadata *structpb.Struct `json:"metadata,omitempty"`
	// UserAgent is the program's name and version, such as "envoy 1.40.0"; "" if it did not say.
	UserAgent string `json:"userAgent,omitempty"`
	// Address is the other end of the connection, as the transport tells it.
	Address string `json:"address,omitempty"`
	// Delta says that the stream is incremental rather than state-of-the-world.
	Delta bool `json:"delta,omitempty"`
	// Identity is what the Authenticator found out about the client; "" without one.
	Identity string `json:"identity,omitempty"`
}

// Authenticator decides who a client is and whether it may be the node that it says it is. Its methods are called at any time from many goroutines.
type Authenticator interface {
	// Authenticate is called once for each stream, before Director.Join, with the node id of the first request. What the client proves is in the stream's
	// context: the peer and the metadata. The error goes to the client as it is if it is a gRPC status (UNAUTHENTICATED for a client that proves nothing,
	// PERMISSION_DENIED for one that may not be this node), else as UNAVAILABLE.
	// Until ctx ends, revoke may be called from any goroutine: it ends the stream with that error, should what was proved cease to hold.
	Authenticate(ctx context.Context, nodeID string, revoke func(error)) (identity string, err error)
}

// Director decides what a proxy gets. Its methods are called at any time from many goroutines.
type Director interface {
	// Join names the group whose Config the proxy gets, and returns once that Config and its endpoints were given to Server.Apply.
	// An error is returned to the proxy as it is if it is a gRPC status (INVALID_ARGUMENT for an unknown node), else as UNAVAILABLE.
	// The context is the stream's: it carries the peer and the request's metadata, and ends with the stream.
	Join(ctx context.Context, p Proxy) (group string, err error)
	// Leave follows each Join that succeeded, once the stream has ended.
	Leave(group string)
}

// Recorder is told what happens on the streams. Its methods are called at any time from many goroutines and must return quickly.
type Recorder interface {
	// Connected says that a proxy joined a group.
	Connected(p Proxy, group string)
	// Disconnected says that the stream of a proxy that had joined ended; err is the status that it got, nil for a normal end.
	Disconnected(p Proxy, group string, err error)
	// Sent says that one response with this many resources and bytes was handed to the transport.
	Sent(typeURL string, resources, bytes int)
	// Acked says that a proxy took a response; since is the time from Update.Since of the oldest change that the response carried,
	// and measured is false if it carried none whose time is known.
	Acked(typeURL string, since time.Duration, measured bool)
	// Nacked says that a proxy refused a response.
	Nacked(n Nack)
	// HoldExpired says that a resource was sent though a cluster that it needs had not finished warming in time.
	HoldExpired(p Proxy, r *Resource)
	// Cut says that the server ended a proxy's stream since the client misbehaved; the Proxy is empty if it had not said who it is.
	Cut(p Proxy, reason CutReason)
}

// CutReason says why the server ended a stream.
type CutReason string

// The reasons for which a stream is cut.
const (
	CutGarbage    CutReason = "garbage"     // a request that the protocol does not allow
	CutFlood      CutReason = "flood"       // requests faster than the limit, or for more names than the limit
	CutSlowReader CutReason = "slow_reader" // the client does not read
	CutNoAck      CutReason = "no_ack"      // the client reads but does not answer
	CutCrowd      CutReason = "crowd"       // more streams than the limit
	CutStranger   CutReason = "stranger"    // a client that does not prove who it is
	CutImpostor   CutReason = "impostor"    // a client that may not be the node that it says it is, or no longer
)

// Nack is a response that a proxy refused. The proxy keeps what it had of the refused resources.
type Nack struct {
	Proxy   Proxy
	Group   string
	TypeURL string
	// Message is the proxy's own error text, cut at 4 KiB.
	Message string
	// Resources are those of the refused response.
	Resources []*Resource
	// Named are those of Resources that the message names; the proxy applied the others. Empty if the message names none.
	Named []*Resource
	// Retrying says that the message does not tell which of several Resources is at fault, so each of them is now sent again alone;
	// a Nack for each that is refused again follows.
	Retrying bool
}
