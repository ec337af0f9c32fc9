// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/encoding"
	_ "google.golang.org/grpc/encoding/proto" // the codec of every message but ours
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers that a DiscoveryResponse and a DeltaDiscoveryResponse have in common, and one of each.
const (
	fieldVersionInfo = 1 // state of the world
	fieldResources   = 2
	fieldTypeURL     = 4
	fieldNonce       = 5
	fieldRemoved     = 6 // delta
)

// Sizes of the transport. A request is rarely above a few hundred bytes, so a small read buffer costs nothing; windows of the protocol's
// default size, set by hand, also turn off the bandwidth probe that would answer every acknowledgement with a ping.
const (
	readBuffer     = 4 << 10
	writeBuffer    = 16 << 10
	window         = 64 << 10
	largestRequest = 4 << 20
	streamsPerConn = 100
	pingAfter      = 30 * time.Second
	pingTimeout    = 10 * time.Second
	pingsAtMost    = 5 * time.Second
	handshakeLimit = 10 * time.Second
)

// ServerOptions returns the options that a gRPC server needs to carry this service: its codec, small buffers, message limits and keepalive.
// Other services may share the gRPC server.
func ServerOptions() []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ForceServerCodecV2(codec{proto: encoding.GetCodecV2("proto")}),
		grpc.ReadBufferSize(readBuffer),
		grpc.WriteBufferSize(writeBuffer),
		grpc.InitialWindowSize(window),
		grpc.InitialConnWindowSize(window),
		grpc.MaxRecvMsgSize(largestRequest),
		grpc.MaxConcurrentStreams(streamsPerConn),
		grpc.ConnectionTimeout(handshakeLimit),
		grpc.KeepaliveParams(keepalive.ServerParameters{Time: pingAfter, Timeout: pingTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: pingsAtMost, PermitWithoutStream: true}),
	}
}

// wire is a response whose resources are already encoded and shared with other streams.
type wire struct {
	parts mem.BufferSlice
	bytes int
}

// codec sends a wire as it is and leaves every other message to the codec that gRPC has for it.
type codec struct {
	proto encoding.CodecV2
}

var _ encoding.CodecV2 = codec{}

// Name is part of the content type.
func (codec) Name() string { return "proto" }

// Marshal returns the parts of a wire without a copy.
func (c codec) Marshal(v any) (mem.BufferSlice, error) {
	if w, ok := v.(*wire); ok {
		return w.parts, nil
	}
	return c.proto.Marshal(v)
}

// Unmarshal reads a request.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error { return c.proto.Unmarshal(data, v) }

// wire encodes all of the response but its resources, and puts theirs before it.
func (r *response) wire(delta bool) *wire {
	w := &wire{parts: make(mem.BufferSlice, 0, len(r.resources)+1)}
	for _, res := range r.resources {
		b := res.sotw
		if delta {
			b = res.delta
		}
		w.parts = append(w.parts, mem.SliceBuffer(b()))
	}
	typeURL := r.kind.typeURL()
	size := fieldSize(len(typeURL)) + fieldSize(len(r.nonce)) + fieldSize(len(r.version))
	for _, name := range r.removed {
		size += fieldSize(len(name))
	}
	rest := make([]byte, 0, size)
	rest = appendString(rest, fieldTypeURL, typeURL)
	rest = appendString(rest, fieldNonce, r.nonce)
	if delta {
		for _, name := range r.removed {
			rest = appendString(rest, fieldRemoved, name)
		}
	} else {
		rest = appendString(rest, fieldVersionInfo, r.version)
	}
	w.parts = append(w.parts, mem.SliceBuffer(rest))
	w.bytes = w.parts.Len()
	return w
}

// fieldSize returns the encoded size of a length-delimited field whose number is below 16 and whose payload has n bytes.
func fieldSize(n int) int { return 1 + protowire.SizeBytes(n) }

func appendString(b []byte, num protowire.Number, s string) []byte {
	return protowire.AppendString(protowire.AppendTag(b, num, protowire.BytesType), s)
}
