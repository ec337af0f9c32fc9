// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"golang.org/x/sync/errgroup"

	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// status is what the HTTP side of a control plane shows.
type status struct {
	registry *prometheus.Registry
	// waits says what is missing before this may be called ready; "" for nothing.
	waits func() string
	// proxies and findings are read when they are asked for.
	proxies  func() []xds.ProxyStatus
	findings func() []mesh.Finding
}

// unread is what a control plane lacks at first.
const unread = "the first read of the input has not ended"

// handler serves /healthz, /readyz, /metrics, /debug/proxies and /debug/findings.
func (s status) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if why := s.waits(); why != "" {
			text(w, http.StatusServiceUnavailable, why)
			return
		}
		text(w, http.StatusOK, "ok")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(s.registry, promhttp.HandlerOpts{Registry: s.registry}))
	mux.HandleFunc("GET /debug/proxies", func(w http.ResponseWriter, _ *http.Request) {
		object(w, append([]xds.ProxyStatus{}, s.proxies()...)) // no proxy is [], not null
	})
	mux.HandleFunc("GET /debug/findings", func(w http.ResponseWriter, _ *http.Request) { object(w, rows(s.findings())) })
	return mux
}

func newServer(handler http.Handler) *http.Server {
	return &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute}
}

// webhookServer is the API server's to call. Its broken handshakes are logged for debugging alone: probes and scanners make them.
func webhookServer(handler http.Handler, config *tls.Config, logger *slog.Logger) *http.Server {
	server := newServer(handler)
	server.TLSConfig, server.ErrorLog = config, slog.NewLogLogger(logger.Handler(), slog.LevelDebug)
	return server
}

// servePages serves the same pages at the address of the metrics, empty for nowhere, and at the port of the probes, in g.
func servePages(ctx context.Context, g *errgroup.Group, handler http.Handler, metrics string, health uint16) error {
	for _, page := range []struct{ flag, address string }{
		{"metrics-addr", metrics}, {"health-probe-port", net.JoinHostPort("", port(health))},
	} {
		if page.address == "" {
			continue
		}
		l, err := listen(ctx, page.flag, page.address, false)
		if err != nil {
			return err
		}
		g.Go(func() error {
			return serveHTTP(ctx, newServer(handler), func(s *http.Server) error { return s.Serve(l) })
		})
	}
	return nil
}

func text(w http.ResponseWriter, code int, body string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write([]byte(body + "\n")) // a client that has gone away is no concern of ours
}

func object(w http.ResponseWriter, v any) {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(append(body, '\n')) // as above
}
