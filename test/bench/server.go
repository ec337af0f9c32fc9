// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	serverv3 "github.com/envoyproxy/go-control-plane/pkg/server/v3"
	"google.golang.org/grpc"

	"github.com/tulle-mesh/tulle/internal/xds"
)

// server is one that is measured, in a process of its own.
type server struct {
	name  string
	addr  string
	cmd   *exec.Cmd
	stdin io.WriteCloser
	stop  func()
}

// startTulle starts the control plane on a directory of manifests.
func startTulle(ctx context.Context, binary, dir string) (*server, error) {
	socket := filepath.Join(filepath.Dir(dir), "tulle.sock")
	return start(ctx, "tulle", socket, exec.CommandContext(ctx, binary, "serve", "-f", dir, "--xds", "unix://"+socket, "--http", "", "--log-level", "warn")) //nolint:gosec // the program that is to be measured
}

// startBaseline starts this program again as another server.
func startBaseline(ctx context.Context, kind, scopePath string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", kind, err)
	}
	socket := filepath.Join(filepath.Dir(scopePath), kind+".sock")
	return start(ctx, kind, socket, exec.CommandContext(ctx, self, "-serve", kind, "-scope", scopePath, "-socket", socket)) //nolint:gosec // this program itself
}

func start(ctx context.Context, name, socket string, cmd *exec.Cmd) (*server, error) {
	_ = os.Remove(socket)
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	s := &server{name: name, addr: "unix://" + socket, cmd: cmd, stdin: stdin}
	s.stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = stdin.Close()
		_ = cmd.Wait()
	}
	for range 600 {
		if c, err := new(net.Dialer).DialContext(ctx, "unix", socket); err == nil {
			_ = c.Close()
			return s, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
	s.stop()
	return nil, fmt.Errorf("start %s: it does not listen", name)
}

// command tells a baseline to make a change.
func (s *server) command(text string) error {
	if _, err := io.WriteString(s.stdin, text+"\n"); err != nil {
		return fmt.Errorf("tell %s: %w", s.name, err)
	}
	return nil
}

// serveBaseline is the other side: it serves until its standard input ends.
func serveBaseline(ctx context.Context, kind, scopePath, socket string) error {
	scope, err := loadScope(scopePath)
	if err != nil {
		return err
	}
	g := grpc.NewServer()
	var apply func(string) error
	switch kind {
	case "floor":
		f, err := newFloor(scope)
		if err != nil {
			return err
		}
		discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, f)
		apply = f.apply
	case "snapshots":
		b, err := newSnapshots(ctx, scope)
		if err != nil {
			return err
		}
		discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, serverv3.NewServer(ctx, b.cache, nil))
		apply = func(c string) error { return b.apply(ctx, c) }
	case "delivery":
		d, err := newDelivery(scope)
		if err != nil {
			return err
		}
		g = grpc.NewServer(xds.ServerOptions()...)
		d.server.Register(g)
		apply = d.apply
	default:
		return fmt.Errorf("no baseline is named %q", kind)
	}
	lis, err := new(net.ListenConfig).Listen(ctx, "unix", socket)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(lis) }()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if err := apply(strings.TrimSpace(lines.Text())); err != nil {
			return errors.Join(err, lis.Close())
		}
	}
	g.Stop()
	return <-served
}
