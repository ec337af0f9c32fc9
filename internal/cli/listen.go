// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"
)

// unixScheme marks the path of a socket in an address.
const unixScheme = "unix://"

// listen opens an address: host:port, or unix:///path. With loopbackOnly a host:port must stay on this machine.
func listen(ctx context.Context, flag, address string, loopbackOnly bool) (net.Listener, error) {
	if path, ok := strings.CutPrefix(address, unixScheme); ok {
		return listenUnix(ctx, flag, path)
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, usagef("--%s %s: want host:port or unix:///path", flag, address)
	}
	if loopbackOnly && !isLoopback(host) {
		return nil, usagef("--%s %s: plaintext is served on loopback and unix sockets only; use 127.0.0.1, [::1] or unix:///path", flag, address)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("--%s %s: %w", flag, address, err)
	}
	return l, nil
}

// staysHere says that nothing that is sent to an address leaves the machine.
func staysHere(address string) bool {
	host, _, err := net.SplitHostPort(address)
	return strings.HasPrefix(address, unixScheme) || (err == nil && isLoopback(host))
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// listenUnix opens a socket for this user and group. What a control plane that was killed has left is taken over; what another one serves is not.
func listenUnix(ctx context.Context, flag, path string) (net.Listener, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, usagef("--%s unix://%s: want an absolute path, as in unix:///run/tulle.sock", flag, path)
	}
	var config net.ListenConfig
	l, err := config.Listen(ctx, "unix", path)
	if errors.Is(err, syscall.EADDRINUSE) && abandoned(ctx, path) {
		if err := os.Remove(path); err != nil {
			return nil, fmt.Errorf("--%s: %w", flag, err)
		}
		l, err = config.Listen(ctx, "unix", path)
	}
	if err != nil {
		return nil, fmt.Errorf("--%s unix://%s: %w", flag, path, err)
	}
	// The group may connect too: a proxy's agent seldom runs as the control plane's own user.
	if err := os.Chmod(path, 0o660); err != nil { //nolint:gosec // on purpose, see above
		return nil, errors.Join(fmt.Errorf("--%s: %w", flag, err), l.Close())
	}
	return l, nil
}

// abandoned says that path is a socket on which nobody listens.
func abandoned(ctx context.Context, path string) bool {
	dialer := net.Dialer{Timeout: time.Second}
	c, err := dialer.DialContext(ctx, "unix", path)
	if err == nil {
		return c.Close() != nil
	}
	return errors.Is(err, syscall.ECONNREFUSED)
}
