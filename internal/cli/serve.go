// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/metrics"
	"github.com/tulle-mesh/tulle/internal/plane"
	"github.com/tulle-mesh/tulle/internal/store"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// serveOptions are the flags of serve.
type serveOptions struct {
	in        *input
	xds       string
	cert, key string
	http      string
	log       *logging
}

func newServe(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "serve -f PATH",
		Short: "Run the control plane from manifests on disk",
		Long: `Serve reads manifests, watches them, and gives Envoy proxies their configuration over ADS.

A file that cannot be read keeps its last good state. /healthz, /readyz, /metrics, /debug/proxies and /debug/findings are served over HTTP.`,
		Example: `  # On this machine, for proxies on this machine
  tulle serve -f manifests/ --xds 127.0.0.1:18000 --http 127.0.0.1:8080

  # For proxies on other machines; whoever reaches the port gets what it asks for
  tulle serve -f manifests/ --xds 10.0.0.1:443 --xds-tls-cert tls.crt --xds-tls-key tls.key

  # On a unix socket, which tulle-agent takes as APPMESH_XDS_ENDPOINT
  tulle serve -f manifests/ --xds unix:///run/tulle/xds.sock`,
	}
	o := serveOptions{in: addInput(c), log: addLogging(c)}
	c.Flags().StringVar(&o.xds, "xds", "127.0.0.1:18000", "where proxies connect: host:port (loopback only without a certificate) or unix:///path")
	c.Flags().StringVar(&o.cert, "xds-tls-cert", "", "PEM file of the certificate that proxies are shown, read again when it changes; plaintext when empty")
	c.Flags().StringVar(&o.key, "xds-tls-key", "", "PEM file of the certificate's key")
	c.Flags().StringVar(&o.http, "http", "127.0.0.1:8080", "where health, metrics and debug pages are served: host:port or unix:///path; empty for nowhere")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		return serve(ctx, env, o)
	}
	return c
}

// serve runs until ctx ends, which is a good end.
func serve(ctx context.Context, env Env, o serveOptions) error {
	logger, err := o.log.logger(env)
	if err != nil {
		return err
	}
	source, err := o.in.source(env, logger)
	if err != nil {
		return err
	}
	cp := newControlPlane(env, o.in.options(), nil, logger)
	options, err := o.security(ctx, logger)
	if err != nil {
		return err
	}
	xdsListener, err := listen(ctx, "xds", o.xds, len(options) == 0)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		// Proxies that come before the first read of the input has ended wait for it: to tell them that their node does not exist would be wrong.
		select {
		case <-cp.synced:
			return cp.serveXDS(ctx, func(s *grpc.Server) error { return s.Serve(xdsListener) }, options...)
		case <-ctx.Done():
			return xdsListener.Close()
		}
	})
	if o.http != "" {
		httpListener, err := listen(ctx, "http", o.http, false)
		if err != nil {
			return errors.Join(err, xdsListener.Close())
		}
		g.Go(func() error {
			return serveHTTP(ctx, newServer(cp.status().handler()), func(s *http.Server) error { return s.Serve(httpListener) })
		})
	}
	g.Go(func() error { cp.plane.Run(ctx); return nil })
	g.Go(func() error {
		return source.Run(ctx, func(changes mesh.Changes) {
			cp.apply(ctx, changes)
		})
	})
	logger.Info("serving", "xds", o.xds, "http", o.http)
	return g.Wait()
}

// security is the gRPC server's TLS where there is a certificate.
func (o serveOptions) security(ctx context.Context, logger *slog.Logger) ([]grpc.ServerOption, error) {
	if o.cert == "" && o.key == "" {
		return nil, nil
	}
	if o.cert == "" || o.key == "" {
		return nil, usagef("--xds-tls-cert and --xds-tls-key belong together: give both, or neither")
	}
	config := certificateFiles(o.cert, o.key)
	if _, err := config.GetCertificate(nil); err != nil {
		return nil, usagef("--xds-tls-cert %s, --xds-tls-key %s: %w", o.cert, o.key, err)
	}
	if !staysHere(o.xds) {
		logger.WarnContext(ctx, "proxies need not prove who they are: whoever reaches the address gets the configuration of any node", "xds", o.xds)
	}
	config.MinVersion = tls.VersionTLS13
	return []grpc.ServerOption{grpc.Creds(credentials.NewTLS(config))}, nil
}

// controlPlane is the parts of a running control plane, wired.
type controlPlane struct {
	logger   *slog.Logger
	store    *store.Memory
	plane    *plane.Plane
	xds      *xds.Server
	registry *prometheus.Registry
	// synced is closed, once, when the first state of the input is in force.
	synced chan struct{}
	first  sync.Once
	// waits says what is missing before this control plane may be called ready.
	waits func() string
}

// newControlPlane wires the parts; with auth proxies must prove who they are, nil lets each be what it says.
func newControlPlane(env Env, opts mesh.Options, auth xds.Authenticator, logger *slog.Logger) *controlPlane {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	m := metrics.New(registry)
	cp := &controlPlane{logger: logger, store: store.New(opts), registry: registry, synced: make(chan struct{})}
	cp.waits = func() string { return missing(cp.isSynced()) }
	cp.plane = plane.New(plane.Options{Store: cp.store, Logger: logger, Now: env.Clock.Now, Recorder: m})
	cp.xds = xds.New(xds.Options{Director: cp.plane, Authenticator: auth, Clock: env.Clock, Recorder: m, Logger: logger})
	cp.plane.Deliver(cp.xds)
	return cp
}

// apply takes a step of the input, and logs what the input found in it.
func (cp *controlPlane) apply(ctx context.Context, changes mesh.Changes) {
	cp.store.Apply(changes)
	for _, list := range changes.Findings {
		for _, f := range list {
			logFinding(ctx, cp.logger, f)
		}
	}
	cp.first.Do(func() {
		close(cp.synced)
		cp.logger.InfoContext(ctx, "synced", "objects", cp.store.Snapshot().Len(), "findings", len(cp.store.Findings()))
	})
}

func (cp *controlPlane) isSynced() bool {
	select {
	case <-cp.synced:
		return true
	default:
		return false
	}
}

func (cp *controlPlane) status() status {
	return status{
		registry: cp.registry, waits: cp.waits, proxies: cp.xds.Proxies,
		findings: func() []mesh.Finding {
			return mesh.SortFindings(append(append(cp.store.Findings(), cp.plane.Findings()...), cp.plane.Refusals(cp.xds.Proxies())...))
		},
	}
}

// serveXDS serves until ctx ends, then ends every stream with code 0, so that proxies come back to whoever follows.
func (cp *controlPlane) serveXDS(ctx context.Context, run func(*grpc.Server) error, options ...grpc.ServerOption) error {
	server := grpc.NewServer(append(xds.ServerOptions(), options...)...)
	cp.xds.Register(server)
	stop := context.AfterFunc(ctx, func() {
		cp.xds.Close()
		server.GracefulStop()
	})
	defer stop()
	if err := run(server); err != nil {
		return fmt.Errorf("serve xds: %w", err)
	}
	return nil
}

func serveHTTP(ctx context.Context, server *http.Server, run func(*http.Server) error) error {
	stop := context.AfterFunc(ctx, func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = server.Shutdown(end) // what is still open after that is cut by the exit
	})
	defer stop()
	if err := run(server); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve http: %w", err)
	}
	return nil
}

func logFinding(ctx context.Context, logger *slog.Logger, f mesh.Finding) {
	level := slog.LevelInfo
	switch f.Severity {
	case mesh.SeverityError:
		level = slog.LevelError
	case mesh.SeverityWarning:
		level = slog.LevelWarn
	case mesh.SeverityInfo:
	}
	attributes := []any{"reason", f.Reason, "object", objectName(f.Object)}
	if f.Field != "" {
		attributes = append(attributes, "field", f.Field)
	}
	if f.Object.File != "" {
		attributes = append(attributes, "file", f.Object.File, "line", f.Object.Line)
	}
	if f.Mend != "" {
		attributes = append(attributes, "mend", f.Mend)
	}
	logger.Log(ctx, level, f.Message, attributes...)
}
