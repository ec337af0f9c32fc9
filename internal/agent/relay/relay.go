// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package relay carries gRPC streams from a unix socket to the control plane and back without a look at what they hold; the agent calls it.
package relay

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"math"
	"net"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// Options are what a Relay is made from.
type Options struct {
	// Endpoints are where the control plane is; at least one.
	Endpoints []Endpoint
	Trust     Trust
	Log       *slog.Logger
	// Lookup finds the addresses of a host; nil for the machine's own way.
	Lookup func(ctx context.Context, host string) ([]netip.Addr, error)
}

// Relay serves any gRPC method by calling the same method of the control plane. Make one with New.
type Relay struct {
	endpoints []Endpoint
	trust     Trust
	lookup    func(ctx context.Context, host string) ([]netip.Addr, error)
	log       *slog.Logger
	server    *grpc.Server
	// seed puts the addresses of one name in an order of this relay's own, so that proxies spread over the replicas.
	seed maphash.Seed
	// left is the target whose stream ended last; the next stream is tried at the one after it. It is guarded by mu.
	mu   sync.Mutex
	left string
	// silent is set while no endpoint answers.
	silent atomic.Bool
	// streams is how many streams reach the control plane now.
	streams atomic.Int64
}

// New makes a relay that serves nothing yet. The endpoints must have passed Trust.Check.
func New(o Options) *Relay {
	r := &Relay{endpoints: o.Endpoints, trust: o.Trust, lookup: o.Lookup, log: o.Log, seed: maphash.MakeSeed()}
	if r.lookup == nil {
		r.lookup = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	r.server = grpc.NewServer(
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.UnknownServiceHandler(r.carry),
		grpc.MaxRecvMsgSize(math.MaxInt32),
		grpc.MaxSendMsgSize(math.MaxInt32),
	)
	return r
}

// Serve takes streams from the listener until the context ends. Streams that are open then end with status Unavailable.
func (r *Relay) Serve(ctx context.Context, listener net.Listener) error {
	stop := context.AfterFunc(ctx, r.server.Stop)
	defer stop()
	if err := r.server.Serve(listener); err != nil && !errors.Is(err, grpc.ErrServerStopped) {
		return fmt.Errorf("relay: %w", err)
	}
	return nil
}

// Connected says whether a stream reaches the control plane now.
func (r *Relay) Connected() bool { return r.streams.Load() > 0 }

// carry relays one stream: it finds an endpoint that answers, and ends the stream as the control plane ended it.
func (r *Relay) carry(_ any, down grpc.ServerStream) error {
	ctx, cancel := context.WithCancel(down.Context())
	defer cancel()
	method, ok := grpc.MethodFromServerStream(down)
	if !ok {
		return status.Error(codes.Internal, "relay: the stream names no method")
	}
	conn, to, err := r.connect(ctx)
	if err != nil {
		if !r.silent.Swap(true) { // said once
			r.log.WarnContext(ctx, "no endpoint of the control plane answers; Envoy keeps its configuration and comes again", "error", err)
		}
		return status.Errorf(codes.Unavailable, "no endpoint of the control plane answers: %v", err)
	}
	defer closeQuietly(conn)
	log := r.log.With("endpoint", to.String())
	ctx, err = r.outgoing(ctx, to)
	if err != nil {
		log.WarnContext(ctx, "no stream to the control plane; Envoy keeps its configuration and comes again", "error", err)
		return status.Error(codes.Unavailable, err.Error())
	}

	up, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, method,
		grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(math.MaxInt32), grpc.MaxCallSendMsgSize(math.MaxInt32))
	if err == nil {
		r.streams.Add(1)
		log.InfoContext(ctx, "connected to the control plane", "method", method)
		err = pump(down, up)
		r.streams.Add(-1)
	}
	if down.Context().Err() != nil {
		return status.FromContextError(down.Context().Err()).Err()
	}
	// Whatever the reason, the next stream tries the next target first: a server that ends streams is full, going away or broken.
	r.leave(to)
	s := status.Convert(err)
	log.WarnContext(ctx, "the control plane ended the stream; Envoy keeps its configuration and comes again", "code", s.Code().String(), "message", s.Message())
	return err
}

// pump copies messages both ways until the control plane ends the stream, and returns its status; nil for OK.
func pump(down grpc.ServerStream, up grpc.ClientStream) error {
	go func() {
		for {
			f := new(frame)
			if err := down.RecvMsg(f); err != nil {
				// Envoy is done sending, or gone. In the second case the context ends the other direction.
				_ = up.CloseSend()
				return
			}
			if up.SendMsg(f) != nil {
				f.data.Free()
				return
			}
		}
	}()
	if header, err := up.Header(); err == nil && len(header) > 0 {
		if err := down.SendHeader(withoutReserved(header)); err != nil {
			return fmt.Errorf("send headers to Envoy: %w", err)
		}
	}
	for {
		f := new(frame)
		if err := up.RecvMsg(f); err != nil {
			down.SetTrailer(withoutReserved(up.Trailer()))
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		}
		if err := down.SendMsg(f); err != nil {
			f.data.Free()
			return fmt.Errorf("send to Envoy: %w", err)
		}
	}
}

// outgoing is the context of the call to the control plane: Envoy's own headers, but for those that belong to the connection, and what proves the pod.
func (r *Relay) outgoing(ctx context.Context, to target) (context.Context, error) {
	incoming, _ := metadata.FromIncomingContext(ctx)
	md := withoutReserved(incoming)
	if r.trust.secures(to.endpoint) {
		if err := r.trust.prove(md); err != nil {
			return ctx, err
		}
	}
	return metadata.NewOutgoingContext(ctx, md), nil
}

func withoutReserved(all metadata.MD) metadata.MD {
	kept := metadata.MD{}
	for name, values := range all {
		reserved := strings.HasPrefix(name, ":") || strings.HasPrefix(name, "grpc-") || name == "content-type" || name == "user-agent" || name == "te"
		if !reserved {
			kept[name] = values
		}
	}
	return kept
}

func closeQuietly(conn *grpc.ClientConn) {
	// A connection that is given up has nothing left to say.
	_ = conn.Close()
}
