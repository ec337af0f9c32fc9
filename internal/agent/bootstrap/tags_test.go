// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package bootstrap

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tulle-mesh/tulle/internal/agent/envoytest"
)

// tagsConfig is an Envoy with statistics of the given prefixes; no other filter makes such names without Wasm.
const tagsConfig = `admin: {address: {pipe: {path: admin.sock}}}
static_resources:
  listeners:
  - address: {pipe: {path: listener.sock}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: ingress.http.5555
          route_config: {name: rds_ingress_http_5555}
          http_filters:
%s          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
`

const tagsFilter = `          - name: %s
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit
              stat_prefix: %s
`

func TestEnvoyFindsTagsInStatistics(t *testing.T) {
	t.Parallel()
	prefixes := []string{
		// Capital M, V and T in the service's name do not end it.
		"appmesh.Mesh.m.VirtualNode.v.TargetVirtualService.My-Metal.Tv.svc.cluster.local.TargetVirtualNode.Vn-1",
		"appmesh.TargetVirtualNode.jazz.TargetVirtualService.jazz.prod",
	}
	want := []string{
		`TargetVirtualService="My-Metal.Tv.svc.cluster.local"`,
		`TargetVirtualNode="Vn-1"`,
		`TargetVirtualService="jazz.prod`,
		`TargetVirtualNode="jazz"`,
		`envoy_http_downstream_rq_total{Mesh="m",VirtualNode="n",envoy_http_conn_manager_prefix="ingress",appmesh_listener_protocol="http",appmesh_listener_port="5555"}`,
		`envoy_listener_address="listener",appmesh_listener_protocol="http",appmesh_listener_port="5555"} 0`,
	}
	var filters strings.Builder
	for i, prefix := range prefixes {
		fmt.Fprintf(&filters, tagsFilter, fmt.Sprint("limit", i), prefix)
	}
	bootstrap, err := Render(Settings{Proxy: Proxy{ID: "mesh/m/virtualNode/n", Mesh: "m", Kind: virtualNode, Name: "n"}, MetricsExtension: true})
	if err != nil {
		t.Fatal(err)
	}
	_, stats, found := bytes.Cut(bootstrap, []byte("\nstats_config:"))
	if !found {
		t.Fatalf("no stats_config in:\n%s", bootstrap)
	}
	got := scrape(t, fmt.Sprintf(tagsConfig, filters.String())+"stats_config:"+string(stats))
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("no %s in the statistics:\n%s", w, relevant(got))
		}
	}
}

func relevant(stats string) string {
	var kept strings.Builder
	for line := range strings.Lines(stats) {
		if strings.Contains(line, "rate_limit") || strings.Contains(line, "5555") {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// scrape runs Envoy with a configuration whose sockets are relative to its directory, and returns its statistics.
func scrape(t *testing.T, config string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "envoy.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	command := exec.CommandContext(t.Context(), envoytest.Path(t), "-c", "envoy.yaml", "--disable-hot-restart", "--concurrency", "1", "--log-level", "error")
	command.Dir, command.Stdout, command.Stderr = dir, &log, &log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = command.Wait() // it is killed, or its log tells why it ended
		close(ended)
	}()
	defer func() {
		_ = command.Process.Kill()
		<-ended
	}()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, "admin.sock"))
	}}}
	for {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://envoy/stats/prometheus", nil)
		if err != nil {
			t.Fatal(err)
		}
		if response, err := client.Do(request); err == nil {
			body, err := io.ReadAll(response.Body)
			_ = response.Body.Close()
			if err == nil && bytes.Contains(body, []byte("rate_limit")) {
				return string(body)
			}
		}
		select {
		case <-ended:
			t.Fatalf("Envoy ended:\n%s", log.String())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
