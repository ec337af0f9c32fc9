// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
)

// stream is one client. Three goroutines touch it: the handler waits for its end, one receives, and one sends while there is something to send.
type stream struct {
	srv    *Server
	grpc   grpc.ServerStream
	opened time.Time
	done   chan struct{}
	bucket bucket // the receiver's alone

	mu        sync.Mutex
	proxy     Proxy // set before group
	hello     bool  // the first request has arrived
	group     *group
	snap      *snapshot
	subs      [kinds]*subscription
	err       error // once closed
	closed    bool
	flushing  bool
	serial    uint64
	returning bool                // the client brought configuration from an earlier stream
	sendStart time.Time           // zero while nothing is being handed to the transport
	owed      map[string]struct{} // endpoints of clusters that were sent before the client asked for any endpoints
	warming   map[string]uint64   // clusters new to the client that warm, and the response that brought them
	holds     map[hold]time.Time  // routes and listeners that wait for those, and since when
	removals  time.Time           // until when the removal of clusters waits for the client to ask for its routes; zero: it does not
}

type hold struct {
	kind kind
	name string
}

// serve is the handler of one stream.
func (s *Server) serve(gs grpc.ServerStream, delta bool) error {
	st := &stream{
		srv: s, grpc: gs, opened: s.clock.Now(), done: make(chan struct{}),
		bucket: bucket{rate: s.limits.Requests, size: float64(s.limits.Burst), tokens: float64(s.limits.Burst)},
		proxy:  Proxy{ID: s.ids.Add(1), Delta: delta},
	}
	if p, ok := peer.FromContext(gs.Context()); ok && p.Addr != nil {
		st.proxy.Address = p.Addr.String()
	}
	if err := s.enter(st); err != nil {
		return err
	}
	go st.receive()
	<-st.done
	return st.err //nolint:wrapcheck // a gRPC status already
}

// receive reads requests until the stream ends, however it ends, and then takes it off the books.
func (st *stream) receive() {
	defer st.srv.leave(st)
	defer st.recover()
	for {
		var err error
		if st.proxy.Delta {
			req := new(discoveryv3.DeltaDiscoveryRequest)
			if err = st.grpc.RecvMsg(req); err == nil {
				err = st.handleDelta(req)
			}
		} else {
			req := new(discoveryv3.DiscoveryRequest)
			if err = st.grpc.RecvMsg(req); err == nil {
				err = st.handleSotW(req)
			}
		}
		if err != nil {
			st.end(err)
			return
		}
	}
}

// end finishes the stream for an error of the transport or of a request.
func (st *stream) end(err error) {
	var bad *fault
	switch {
	case errors.As(err, &bad):
		st.finish(bad.status.Err(), bad.reason)
	case errors.Is(err, io.EOF):
		st.finish(nil, "")
	default:
		st.finish(status.Convert(err).Err(), "")
	}
}

// recover turns a panic into the end of this stream alone.
func (st *stream) recover() {
	if p := recover(); p != nil {
		st.srv.log.Error("stream ended by a fault of the server", slog.Any("panic", p), slog.String("stack", string(debug.Stack())))
		st.finish(status.Error(codes.Internal, "fault of the control plane"), "")
	}
}

// fault is an error of the client's making.
type fault struct {
	status *status.Status
	reason CutReason
}

func (f *fault) Error() string { return f.status.String() }

func garbage(format string, args ...any) error {
	return &fault{status: status.Newf(codes.InvalidArgument, format, args...), reason: CutGarbage}
}

func flood(format string, args ...any) error {
	return &fault{status: status.Newf(codes.ResourceExhausted, format, args...), reason: CutFlood}
}

func errGone(group string) error {
	return status.Errorf(codes.InvalidArgument, "there is no configuration for %q any more", group)
}

// finish ends the stream with a status; the first call counts. A reason says that the client is to blame.
func (st *stream) finish(err error, reason CutReason) {
	st.mu.Lock()
	if st.closed {
		st.mu.Unlock()
		return
	}
	st.closed = true
	st.err = err
	proxy := st.proxy
	close(st.done)
	st.mu.Unlock()
	if reason != "" {
		st.srv.rec.Cut(proxy, reason)
		st.srv.log.Warn("client cut off", slog.String("reason", string(reason)), slog.String("node", proxy.NodeID),
			slog.String("address", proxy.Address), slog.Any("error", err))
	}
}

// identify checks the node of a request; the first one decides the group.
func (st *stream) identify(n *corev3.Node) error {
	if st.group != nil { // written by this goroutine alone
		if id := n.GetId(); id != "" && id != st.proxy.NodeID {
			return st.srv.otherNode(st.proxy.NodeID, id)
		}
		return nil
	}
	if n == nil && st.srv.auth == nil { // with an authenticator it is one more node that the client may not be
		return garbage("the first request has no node")
	}
	st.mu.Lock()
	st.hello = true
	st.mu.Unlock()
	proxy := st.proxy
	proxy.NodeID, proxy.Cluster, proxy.Metadata, proxy.UserAgent = n.GetId(), n.GetCluster(), n.GetMetadata(), userAgent(n)
	ctx := st.grpc.Context()
	var err error
	if proxy.Identity, err = st.authenticate(ctx, proxy.NodeID); err != nil {
		return err
	}
	if n == nil {
		return garbage("the first request has no node")
	}
	name, err := st.srv.director.Join(ctx, proxy)
	if err != nil {
		return refusal(ctx, err)
	}
	return st.srv.join(st, proxy, name)
}

// refusal is an error of the director or the authenticator as the client gets it.
func refusal(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("stream ended: %w", context.Cause(ctx))
	}
	if _, ok := status.FromError(err); ok {
		return err //nolint:wrapcheck // a status goes to the proxy as it is
	}
	return status.Error(codes.Unavailable, err.Error())
}

func userAgent(n *corev3.Node) string {
	version := n.GetUserAgentVersion()
	if v := n.GetUserAgentBuildVersion().GetVersion(); version == "" && v != nil {
		version = fmt.Sprintf("%d.%d.%d", v.GetMajorNumber(), v.GetMinorNumber(), v.GetPatch())
	}
	if version == "" {
		return n.GetUserAgentName()
	}
	return n.GetUserAgentName() + " " + version
}

// subscription returns the state of a type, and whether this is the client's first request for it. The lock is held.
func (st *stream) subscription(k kind) (sub *subscription, first bool) {
	sub = st.subs[k]
	if sub == nil {
		sub = newSubscription()
		st.subs[k] = sub
	}
	first = !sub.asked
	sub.asked = true
	return sub, first
}

// update tells the stream that the group's state changed.
func (st *stream) update(snap *snapshot, c *change) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if st.closed {
		return
	}
	st.snap = snap
	for k := range kinds {
		sub := st.subs[k]
		if sub == nil {
			continue
		}
		touched := false
		for _, name := range c.names[k] {
			if sub.wants(name) {
				sub.touch(name, look)
				touched = true
			}
		}
		if touched && !c.since.IsZero() && (sub.since.IsZero() || c.since.Before(sub.since)) {
			sub.since = c.since
		}
	}
	st.kick()
}

// kick starts the sender if there may be something to send. The lock is held.
func (st *stream) kick() {
	if st.flushing || st.closed || st.group == nil {
		return
	}
	for _, sub := range st.subs {
		if sub != nil && (len(sub.dirty) > 0 || sub.answer) {
			st.flushing = true
			go st.flush()
			return
		}
	}
}

// flush sends until there is nothing left that may be sent now.
func (st *stream) flush() {
	defer st.recover()
	for {
		batch := st.next()
		if batch == nil {
			return
		}
		for _, r := range batch {
			if err := st.send(r); err != nil {
				st.end(err)
				return
			}
		}
	}
}

// next plans the next batch; nil ends the sender.
func (st *stream) next() []*response {
	batch, expired := st.planned(st.srv.clock.Now())
	for _, r := range expired {
		st.srv.rec.HoldExpired(st.proxy, r)
		st.srv.log.Warn("sent although a cluster that it needs still warms", slog.String("node", st.proxy.NodeID),
			slog.String("type", r.TypeURL()), slog.String("name", r.name))
	}
	return batch
}

func (st *stream) planned(now time.Time) (batch []*response, expired []*Resource) {
	st.mu.Lock()
	defer st.mu.Unlock()
	if !st.closed {
		p := plan{st: st, now: now}
		p.run()
		batch, expired = p.out, p.expired
	}
	if len(batch) == 0 {
		st.flushing = false
	}
	return batch, expired
}

// send hands one response to the transport, which blocks while the client does not read.
func (st *stream) send(r *response) error {
	w := r.wire(st.proxy.Delta)
	st.mu.Lock()
	st.sendStart = st.srv.clock.Now()
	st.mu.Unlock()
	err := st.grpc.SendMsg(w)
	st.mu.Lock()
	st.sendStart = time.Time{}
	st.mu.Unlock()
	if err != nil {
		return fmt.Errorf("send: %w", err)
	}
	st.srv.rec.Sent(r.kind.typeURL(), len(r.resources), w.bytes)
	return nil
}
