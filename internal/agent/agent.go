// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package agent starts Envoy, feeds it its configuration from the control plane, watches it and ends it without losing a request; only tulle-agent calls it.
package agent

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/tulle-mesh/tulle/internal/agent/bootstrap"
	"github.com/tulle-mesh/tulle/internal/agent/relay"
	"github.com/tulle-mesh/tulle/internal/clock"
)

// Streams are where Envoy's and the agent's own words go.
type Streams struct {
	// Out gets Envoy's standard output, which access logs are often sent to.
	Out *os.File
	// Err gets Envoy's log.
	Err *os.File
	// Log is the agent's log.
	Log *slog.Logger
}

// agent is one running agent.
type agent struct {
	config Config
	log    *slog.Logger
	clock  clock.Clock
	admin  *admin
	relay  *relay.Relay
	envoy  *process
	drain  *drainer
}

// Run starts Envoy and stays until it has ended: when stop is closed, after a drain, with nil; when ctx ends, at once; when Envoy has ended by itself more
// often than it may be started again, with an error.
func Run(ctx context.Context, stop <-chan struct{}, config Config, streams Streams) error {
	if err := config.Validate(); err != nil {
		return err
	}
	unlock, err := prepareRunDir(config.RunDir)
	if err != nil {
		return err
	}
	defer unlock()

	a := &agent{config: config, log: streams.Log, clock: clock.Real{}, admin: newAdmin(config.Bootstrap.AdminPort)}
	if a.envoy, err = newProcess(config, streams, a.writeBootstrap); err != nil {
		return err
	}
	a.drain = &drainer{admin: a.admin, clock: a.clock, log: a.log, config: config.Drain, done: make(chan struct{})}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	group, ctx := errgroup.WithContext(ctx)
	if len(config.ControlPlane) > 0 {
		listener, err := a.listenADS(ctx)
		if err != nil {
			return err
		}
		a.relay = relay.New(relay.Options{Endpoints: config.ControlPlane, Trust: config.Trust, Log: a.log})
		group.Go(func() error { return a.relay.Serve(ctx, listener) })
	}
	status, err := a.listenStatus(ctx)
	if err != nil {
		return err
	}
	group.Go(func() error { return a.serveStatus(ctx, status) })
	if os.Getpid() == 1 {
		group.Go(func() error { return reapOrphans(ctx, a.envoy.isOurs) })
	}
	group.Go(func() error {
		// Once Envoy has ended for good, so does everything else.
		defer cancel()
		return a.envoy.supervise(ctx, a.log, a.clock)
	})
	group.Go(func() error {
		select {
		case <-stop:
			a.end(ctx)
		case <-ctx.Done():
		}
		return nil
	})
	if err := group.Wait(); err != nil && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// end lets Envoy finish what it is at, and ends it.
func (a *agent) end(ctx context.Context) {
	a.log.InfoContext(ctx, "asked to end: draining Envoy", "limit", a.config.Drain.Limit)
	a.drain.run(ctx)
	a.drain.close(ctx)
	a.envoy.end(ctx, a.log, a.clock)
}

// writeBootstrap makes the bootstrap anew, since the host's addresses may differ from the last time, and returns its path.
func (a *agent) writeBootstrap(ctx context.Context) (string, error) {
	if a.config.ConfigFile != "" {
		return a.config.ConfigFile, nil
	}
	text, err := Bootstrap(ctx, a.config)
	if err != nil {
		return "", err
	}
	path := filepath.Join(a.config.RunDir, "bootstrap.yaml")
	// It holds no secret, and Envoy reads it as another user.
	if err := os.WriteFile(path, text, 0o644); err != nil { //nolint:gosec // G306: Envoy runs as another user and must read it
		return "", fmt.Errorf("write Envoy's bootstrap: %w", err)
	}
	return path, nil
}

// Bootstrap returns the configuration that Envoy would be started with on this host.
func Bootstrap(ctx context.Context, config Config) ([]byte, error) {
	settings := config.Bootstrap
	settings.ADSSocket = filepath.Join(config.RunDir, adsSocketName)
	settings.IPv6 = hasIPv6(ctx)
	addresses, err := hostAddresses()
	if err != nil {
		return nil, err
	}
	settings.StatsAddresses = addresses
	return bootstrap.Render(settings)
}

// listenADS makes the socket that Envoy, and nobody else, gets its configuration from.
func (a *agent) listenADS(ctx context.Context) (net.Listener, error) {
	path := filepath.Join(a.config.RunDir, adsSocketName)
	listener, err := listenUnix(ctx, path)
	if err != nil {
		return nil, err
	}
	if a.config.User >= 0 {
		if err := os.Chown(path, a.config.User, a.config.User); err != nil {
			return nil, errors.Join(fmt.Errorf("give the socket to Envoy's user: %w", err), listener.Close())
		}
	}
	return listener, nil
}
