// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package xds delivers resources to connected proxies over the aggregated discovery service, delta and state-of-the-world: it knows versions,
// order, acknowledgements and limits, and nothing of meshes. The plane feeds it, and the command line wires it.
package xds

import (
	"cmp"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// Server gives each connected proxy the resources of its group. It is safe for concurrent use.
type Server struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer

	director Director
	auth     Authenticator
	rec      Recorder
	log      *slog.Logger
	clock    Clock
	limits   Limits
	ids      atomic.Uint64
	pool     pool

	// mu is taken before the lock of a stream, never the other way round.
	mu          sync.RWMutex
	closed      bool
	watching    bool
	groups      map[string]*group
	assignments map[string]*assignment
	streams     map[*stream]struct{} // all, joined or not
}

var _ discoveryv3.AggregatedDiscoveryServiceServer = (*Server)(nil)

// New returns a server without any group.
func New(o Options) *Server {
	s := &Server{
		director: o.Director, auth: o.Authenticator, rec: o.Recorder, log: o.Logger, clock: o.Clock, limits: o.Limits.withDefaults(),
		groups: map[string]*group{}, assignments: map[string]*assignment{}, streams: map[*stream]struct{}{},
	}
	if s.rec == nil {
		s.rec = unrecorded{}
	}
	if s.log == nil {
		s.log = slog.New(slog.DiscardHandler)
	}
	return s
}

// Register adds the aggregated discovery service to a gRPC server, which must have been made with ServerOptions.
func (s *Server) Register(r grpc.ServiceRegistrar) {
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(r, s)
}

// StreamAggregatedResources is the state-of-the-world protocol; gRPC calls it for each stream.
func (s *Server) StreamAggregatedResources(gs discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return s.serve(gs, false)
}

// DeltaAggregatedResources is the incremental protocol; gRPC calls it for each stream.
func (s *Server) DeltaAggregatedResources(gs discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return s.serve(gs, true)
}

// Close ends every stream with status OK, which tells the clients to connect again, and refuses new ones with UNAVAILABLE. It does not wait.
func (s *Server) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	for st := range s.streams {
		st.finish(nil, "")
	}
}

// enter puts a new stream on the books.
func (s *Server) enter(st *stream) error {
	s.mu.Lock()
	closed, crowded := s.closed, len(s.streams) >= s.limits.Streams
	if !closed && !crowded {
		s.streams[st] = struct{}{}
		if !s.watching {
			s.watching = true
			go s.watch()
		}
	}
	s.mu.Unlock()
	switch {
	case closed:
		return status.Error(codes.Unavailable, "the control plane is shutting down")
	case crowded:
		s.rec.Cut(st.proxy, CutCrowd)
		return status.Errorf(codes.ResourceExhausted, "the limit of %d connected proxies is reached", s.limits.Streams)
	}
	return nil
}

// join puts the stream into the group that the director named.
func (s *Server) join(st *stream, p Proxy, name string) error {
	s.mu.Lock()
	g := s.groups[name]
	if g == nil {
		s.mu.Unlock()
		s.director.Leave(name)
		return errGone(name)
	}
	g.streams[st] = struct{}{}
	st.mu.Lock()
	st.proxy, st.group, st.snap = p, g, g.snap
	st.mu.Unlock()
	s.mu.Unlock()
	s.rec.Connected(p, name)
	s.log.Info("proxy connected", slog.String("node", p.NodeID), slog.String("group", name), slog.String("address", p.Address), slog.Bool("delta", p.Delta))
	return nil
}

// leave takes a stream that has ended off the books.
func (s *Server) leave(st *stream) {
	s.mu.Lock()
	delete(s.streams, st)
	g := st.group
	if g != nil {
		delete(g.streams, st)
	}
	s.mu.Unlock()
	if g == nil {
		return
	}
	s.director.Leave(g.name)
	s.rec.Disconnected(st.proxy, g.name, st.err)
	s.log.Info("proxy disconnected", slog.String("node", st.proxy.NodeID), slog.String("group", g.name), slog.Any("status", st.err))
}

// tick is how often streams are checked against their time limits.
const tick = time.Second

// watch checks the time limits of all streams for as long as there are any.
func (s *Server) watch() {
	for {
		<-s.clock.After(tick)
		s.mu.Lock()
		all := make([]*stream, 0, len(s.streams))
		for st := range s.streams {
			all = append(all, st)
		}
		s.watching = len(all) > 0
		s.mu.Unlock()
		if len(all) == 0 {
			return
		}
		now := s.clock.Now()
		for _, st := range all {
			st.check(now)
		}
	}
}

// check ends a stream that is over a limit, and wakes one whose wait is over.
func (st *stream) check(now time.Time) {
	l := st.srv.limits
	over := func(since time.Time, d time.Duration) bool { return !since.IsZero() && now.Sub(since) > d }
	st.mu.Lock()
	var oldest time.Time
	for _, sub := range st.subs {
		if sub != nil && len(sub.unacked) > 0 && (oldest.IsZero() || sub.unacked[0].at.Before(oldest)) {
			oldest = sub.unacked[0].at
		}
	}
	silent := !st.hello && over(st.opened, l.Hello)
	stuck := over(st.sendStart, l.Send)
	mute := over(oldest, l.Answer)
	if len(st.holds) > 0 || !st.removals.IsZero() {
		st.kick()
	}
	st.mu.Unlock()
	switch {
	case silent:
		st.finish(status.Errorf(codes.DeadlineExceeded, "no request within %v", l.Hello), CutGarbage)
	case stuck:
		st.finish(status.Errorf(codes.DeadlineExceeded, "the client has not read for %v", l.Send), CutSlowReader)
	case mute:
		st.finish(status.Errorf(codes.DeadlineExceeded, "a response was not answered for %v", l.Answer), CutNoAck)
	}
}

// Proxies returns the connected proxies, sorted by node id, then by stream.
func (s *Server) Proxies() []ProxyStatus {
	s.mu.RLock()
	var out []ProxyStatus
	for _, g := range s.groups {
		for st := range g.streams {
			out = append(out, st.status())
		}
	}
	s.mu.RUnlock()
	slices.SortFunc(out, func(a, b ProxyStatus) int {
		return cmp.Or(cmp.Compare(a.Proxy.NodeID, b.Proxy.NodeID), cmp.Compare(a.Proxy.ID, b.Proxy.ID))
	})
	return out
}

// unrecorded is the Recorder of a server that was given none.
type unrecorded struct{}

var _ Recorder = unrecorded{}

func (unrecorded) Connected(Proxy, string)           {}
func (unrecorded) Disconnected(Proxy, string, error) {}
func (unrecorded) Sent(string, int, int)             {}
func (unrecorded) Acked(string, time.Duration, bool) {}
func (unrecorded) Nacked(Nack)                       {}
func (unrecorded) HoldExpired(Proxy, *Resource)      {}
func (unrecorded) Cut(Proxy, CutReason)              {}
