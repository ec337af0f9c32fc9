// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/credentials/insecure"
)

// attemptLimit is how long one endpoint may take to answer before the next one is tried.
const attemptLimit = 2 * time.Second

// connect returns a connection that is up, and the index of its endpoint. It tries each endpoint once, at once one after the other. If none answers it is Envoy
// that comes again, so that its own statistics tell whether there is a control plane.
func (r *Relay) connect(ctx context.Context) (*grpc.ClientConn, uint32, error) {
	n := count(r.endpoints)
	first := r.next.Load()
	var failures []error
	for i := range n {
		index := (first + i) % n
		conn, err := r.endpoints[index].dial(ctx)
		if err == nil {
			r.silent.Store(false)
			return conn, index, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", r.endpoints[index], err))
	}
	return nil, 0, errors.Join(failures...)
}

// dial connects to the endpoint, once.
func (e Endpoint) dial(ctx context.Context) (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	failed := make(chan error, 1) // why the dialer failed, which grpc itself tells only in more words
	dialer := &net.Dialer{
		// A peer that vanished without a word is noticed by TCP itself, which no server can mind.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
		Control:         e.limitUnacknowledged,
	}
	conn, err := grpc.NewClient("passthrough:///"+e.String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, e.network, e.address)
			if err != nil {
				select {
				case failed <- err:
				default:
				}
			}
			return c, err
		}),
		// The authority is what a server sees as the host it was called by.
		grpc.WithAuthority("tulle"),
		grpc.WithDisableServiceConfig(),
	)
	if err != nil {
		return nil, err
	}
	conn.Connect()
	for {
		state := conn.GetState()
		switch state {
		case connectivity.Ready:
			return conn, nil
		case connectivity.TransientFailure, connectivity.Shutdown:
			closeQuietly(conn)
			select {
			case err := <-failed:
				return nil, err
			default:
				return nil, errors.New("it takes connections but does not speak HTTP/2")
			}
		case connectivity.Idle, connectivity.Connecting:
		}
		if !conn.WaitForStateChange(ctx, state) {
			closeQuietly(conn)
			return nil, ctx.Err()
		}
	}
}

// limitUnacknowledged ends a TCP connection whose peer has acknowledged nothing for 20 s.
func (e Endpoint) limitUnacknowledged(_, _ string, raw syscall.RawConn) error {
	if e.network != "tcp" {
		return nil
	}
	var err error
	if controlErr := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, 20_000)
	}); controlErr != nil {
		return controlErr
	}
	return err
}
