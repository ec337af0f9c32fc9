// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package relay

import (
	"context"
	"crypto/tls"
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

// connect returns a connection that is up, and where it leads. It tries each target once, at once one after the other. If none answers it is Envoy
// that comes again, so that its own statistics tell whether there is a control plane.
func (r *Relay) connect(ctx context.Context) (*grpc.ClientConn, target, error) {
	targets, failures := r.targets(ctx)
	for _, to := range targets {
		conn, err := r.dial(ctx, to)
		if err == nil {
			r.silent.Store(false)
			return conn, to, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", to, err))
	}
	return nil, target{}, errors.Join(failures...)
}

// dial connects to the target, once.
func (r *Relay) dial(ctx context.Context, to target) (*grpc.ClientConn, error) {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	e := to.endpoint
	secure, err := r.handshake(e)
	if err != nil {
		return nil, err
	}
	failed := make(chan error, 1) // why the dialer failed, which grpc itself tells only in more words
	dialer := &net.Dialer{
		// A peer that vanished without a word is noticed by TCP itself, which no server can mind.
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 3},
		Control:         e.limitUnacknowledged,
	}
	conn, err := grpc.NewClient("passthrough:///"+e.String(),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			c, err := dialer.DialContext(ctx, e.network, to.address)
			if err == nil {
				c, err = secure(ctx, c)
			}
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

// handshake returns what makes a connection to the endpoint a secure one. It is done here and not by grpc, which would not tell why it fails.
func (r *Relay) handshake(e Endpoint) (func(context.Context, net.Conn) (net.Conn, error), error) {
	if !r.trust.secures(e) {
		return func(_ context.Context, c net.Conn) (net.Conn, error) { return c, nil }, nil
	}
	config, err := r.trust.client(e)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, c net.Conn) (net.Conn, error) {
		secured := tls.Client(c, config)
		if err := secured.HandshakeContext(ctx); err != nil {
			_ = c.Close() // it is given up
			return nil, explained(err)
		}
		return secured, nil
	}, nil
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
