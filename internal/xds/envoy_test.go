// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// live is a real Envoy that gets its configuration from a server of this package. Everything between them is a unix socket, so the test needs
// neither ports nor namespaces.
type live struct {
	t      *testing.T
	dir    string
	srv    *xds.Server
	grpc   *grpc.Server
	rec    *record
	client *http.Client // through the proxy's listener
	admin  *http.Client
	failed atomic.Int64
	served sync.Map // the names of the applications that answered
}

func startLive(t *testing.T, apiType string) *live {
	t.Helper()
	path, set := os.LookupEnv("TULLE_ENVOY")
	if !set {
		home, err := os.UserHomeDir()
		if err != nil {
			t.Fatal(err)
		}
		path = filepath.Join(home, ".cache/tulle/envoy/1.40.0/envoy")
	}
	if _, err := os.Stat(path); err != nil {
		if _, ci := os.LookupEnv("CI"); ci {
			t.Fatalf("no Envoy: %v", err)
		}
		t.Skipf("no Envoy: run hack/envoy.sh, or set TULLE_ENVOY: %v", err)
	}
	dir, err := os.MkdirTemp("", "xds") //nolint:usetesting // t.TempDir is longer than the path of a unix socket may be
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	l := &live{t: t, dir: dir, client: over(filepath.Join(dir, "in")), admin: over(filepath.Join(dir, "admin"))}
	l.serve()
	config := strings.NewReplacer("DIR", dir, "TYPE", apiType).Replace(bootstrap)
	if err := os.WriteFile(filepath.Join(dir, "envoy.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, "-c", filepath.Join(dir, "envoy.yaml"), "--concurrency", "1", "--use-dynamic-base-id", "--log-level", "warning")
	cmd.Stderr = &log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = patience
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("Envoy said:\n%s", log.String())
		}
	})
	return l
}

const bootstrap = `
node: {id: a, cluster: test}
admin: {address: {pipe: {path: DIR/admin}}}
dynamic_resources:
  ads_config: {api_type: TYPE, transport_api_version: V3, set_node_on_first_message_only: true, grpc_services: [{envoy_grpc: {cluster_name: ads}}]}
  cds_config: {ads: {}, resource_api_version: V3, initial_fetch_timeout: 0s}
  lds_config: {ads: {}, resource_api_version: V3, initial_fetch_timeout: 0s}
static_resources:
  clusters:
  - name: ads
    type: STATIC
    typed_extension_protocol_options:
      envoy.extensions.upstreams.http.v3.HttpProtocolOptions:
        "@type": type.googleapis.com/envoy.extensions.upstreams.http.v3.HttpProtocolOptions
        explicit_http_config: {http2_protocol_options: {}}
    load_assignment: {cluster_name: ads, endpoints: [{lb_endpoints: [{endpoint: {address: {pipe: {path: DIR/ads}}}}]}]}
`

// over makes a client that speaks to a unix socket.
func over(path string) *http.Client {
	return &http.Client{Timeout: patience, Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}}
}

// serve starts a control plane, or another in the place of one that was stopped.
func (l *live) serve() {
	l.t.Helper()
	l.rec = newRecord()
	l.srv = xds.New(xds.Options{Director: newDirectory(), Recorder: l.rec, Clock: clock.Real{}})
	l.grpc = grpc.NewServer(xds.ServerOptions()...)
	l.srv.Register(l.grpc)
	path := filepath.Join(l.dir, "ads")
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		l.t.Fatal(err)
	}
	lis, err := new(net.ListenConfig).Listen(l.t.Context(), "unix", path)
	if err != nil {
		l.t.Fatal(err)
	}
	server := l.grpc
	go func() { _ = server.Serve(lis) }()
	l.t.Cleanup(server.Stop)
}

// application answers every request with its name, and returns its socket.
func (l *live) application(name string) string {
	l.t.Helper()
	path := filepath.Join(l.dir, name)
	lis, err := new(net.ListenConfig).Listen(l.t.Context(), "unix", path)
	if err != nil {
		l.t.Fatal(err)
	}
	s := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, name) })}
	go func() { _ = s.Serve(lis) }()
	l.t.Cleanup(func() { _ = s.Close() })
	return path
}

// load sends requests one after the other until stop is called, and counts those that fail.
func (l *live) load() (stop func()) {
	ctx, cancel := context.WithCancel(l.t.Context())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				name, err := l.get(ctx)
				switch {
				case ctx.Err() != nil:
				case err != nil:
					l.failed.Add(1)
					l.t.Logf("request failed: %v", err)
				default:
					l.served.Store(name, true)
				}
			}
		})
	}
	return func() { cancel(); wg.Wait() }
}

func (l *live) get(ctx context.Context) (string, error) {
	return fetch(ctx, l.client, "http://app/")
}

func fetch(ctx context.Context, c *http.Client, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return "", fmt.Errorf("request: %w", err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", fmt.Errorf("get: %w", err)
	}
	body, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %d %s: %w", resp.StatusCode, body, err)
	}
	return string(body), nil
}

// answers waits until the given application answers.
func (l *live) answers(name string) {
	l.t.Helper()
	eventually(l.t, "an answer of "+name, func() bool {
		got, err := l.get(l.t.Context())
		return err == nil && got == name
	})
}

// dump returns what Envoy says of its configuration.
func (l *live) dump() string {
	out, err := fetch(l.t.Context(), l.admin, "http://admin/config_dump?include_eds")
	if err != nil {
		return err.Error()
	}
	return out
}

func (l *live) give(rs ...*xds.Resource) { (&world{srv: l.srv}).give(rs...) }

var ads = &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}, ResourceApiVersion: corev3.ApiVersion_V3}

func realCluster(t *testing.T, name string, timeout time.Duration, checked bool) *xds.Resource {
	t.Helper()
	m := &clusterv3.Cluster{
		Name: name, ConnectTimeout: durationpb.New(timeout), ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS},
		EdsClusterConfig: &clusterv3.Cluster_EdsClusterConfig{EdsConfig: ads},
	}
	if checked {
		m.HealthChecks = []*corev3.HealthCheck{{
			Timeout: durationpb.New(time.Second), Interval: durationpb.New(time.Second), HealthyThreshold: wrapperspb.UInt32(1), UnhealthyThreshold: wrapperspb.UInt32(1),
			HealthChecker: &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: &corev3.HealthCheck_HttpHealthCheck{Path: "/", Host: "check"}},
		}}
	}
	return resource(t, name, m, xds.Traits{Endpoints: name, Warms: checked})
}

func realAssignment(t *testing.T, name, path string) *xds.Resource {
	t.Helper()
	return resource(t, name, &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{
			Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path}}},
		}}}},
	}}}, xds.Traits{})
}

// realRoute is the route configuration "r", which realListener refers to.
func realRoute(t *testing.T, target string, domains ...string) *xds.Resource {
	t.Helper()
	const name = "r"
	return resource(t, name, &routev3.RouteConfiguration{Name: name, VirtualHosts: []*routev3.VirtualHost{{
		Name: "app", Domains: domains, Routes: []*routev3.Route{{
			Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
			Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: target}}},
		}},
	}}}, xds.Traits{Needs: []string{target}})
}

func realListener(t *testing.T, name, path, routes string) *xds.Resource {
	t.Helper()
	pack := func(m proto.Message) *anypb.Any {
		a, err := anypb.New(m)
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	return resource(t, name, &listenerv3.Listener{
		Name: name, Address: &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: path}}},
		FilterChains: []*listenerv3.FilterChain{{Name: "http", Filters: []*listenerv3.Filter{{
			Name: "hcm", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: pack(&hcmv3.HttpConnectionManager{
				StatPrefix:     name,
				RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{RouteConfigName: routes, ConfigSource: ads}},
				HttpFilters:    []*hcmv3.HttpFilter{{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(&routerv3.Router{})}}},
			})},
		}}}},
	}, xds.Traits{})
}

// TestEnvoy takes a real Envoy through every kind of change under load, with both protocols: no request may fail.
func TestEnvoy(t *testing.T) {
	t.Parallel()
	for _, apiType := range []string{"DELTA_GRPC", "GRPC"} {
		t.Run(apiType, func(t *testing.T) {
			t.Parallel()
			envoyLive(t, apiType)
		})
	}
}

func envoyLive(t *testing.T, apiType string) {
	t.Helper()
	l := startLive(t, apiType)
	v1, v2, v3 := l.application("v1"), l.application("v2"), l.application("v3")
	in := filepath.Join(l.dir, "in")
	lis := realListener(t, "in", in, "r")
	c1, c2 := realCluster(t, "c1", time.Second, false), realCluster(t, "c2", time.Second, false)
	l.give(c1, realAssignment(t, "c1", v1), lis, realRoute(t, "c1", "*"))
	l.answers("v1")
	stop := l.load()

	// A changed cluster, ten times: without its endpoints behind it each would warm for 15 seconds.
	for i := range 10 {
		timeout := time.Duration(2+i) * time.Second
		c1 = realCluster(t, "c1", timeout, false)
		l.give(c1, realAssignment(t, "c1", v1), lis, realRoute(t, "c1", "*"))
		eventually(t, "the changed cluster", func() bool { return strings.Contains(l.dump(), fmt.Sprintf(`"connect_timeout": "%ds"`, 2+i)) })
	}
	// The route moves to a new cluster and the old one goes, back and forth.
	for range 10 {
		l.give(c2, realAssignment(t, "c2", v2), lis, realRoute(t, "c2", "*"))
		l.answers("v2")
		l.give(c1, realAssignment(t, "c1", v1), lis, realRoute(t, "c1", "*"))
		l.answers("v1")
	}
	// A new cluster with health checks: the route waits for it.
	for range 3 {
		l.give(realCluster(t, "c3", time.Second, true), realAssignment(t, "c3", v3), lis, realRoute(t, "c3", "*"))
		l.answers("v3")
		l.give(c1, realAssignment(t, "c1", v1), lis, realRoute(t, "c1", "*"))
		l.answers("v1")
	}
	if n := see(l.rec, func(r *record) int { return len(r.expired) + len(r.nacks) }); n != 0 {
		t.Errorf("%d holds expired or responses refused", n)
	}
	// Endpoints alone.
	l.srv.Apply(xds.Update{Endpoints: byName(realAssignment(t, "c1", v2))})
	l.answers("v2")

	// A route that Envoy refuses: the one before stays.
	l.give(c1, lis, realRoute(t, "c1", "*", "same", "same"))
	eventually(t, "the nack", func() bool { return see(l.rec, func(r *record) bool { return len(r.nacks) == 1 }) })
	good := []*xds.Resource{c1, realAssignment(t, "c1", v1), lis, realRoute(t, "c1", "*")}
	l.give(good...)
	l.answers("v1")

	// The control plane goes; another comes with the same configuration, and has nothing to send (state of the world: nothing but what it
	// cannot know, endpoints and routes).
	l.srv.Close()
	l.grpc.GracefulStop()
	l.serve()
	l.give(good...)
	eventually(t, "the proxy's return", func() bool { return len(l.srv.Proxies()) == 1 && len(l.srv.Proxies()[0].Types) == 4 })
	l.srv.Apply(xds.Update{Endpoints: byName(realAssignment(t, "c1", v3))})
	l.answers("v3")
	sent := see(l.rec, func(r *record) map[string]int { return r.sent })
	if apiType == "DELTA_GRPC" && (sent[xds.EndpointType] != 1 || sent[xds.RouteType] != 0) || sent[xds.ClusterType] != 0 || sent[xds.ListenerType] != 0 {
		t.Errorf("sent to a proxy that came back with everything: %v", sent)
	}
	if lost := l.failed.Load(); lost > 0 {
		t.Errorf("%d requests failed", lost)
	}
	// One more comes with another configuration: the old cluster goes after the route. In the state-of-the-world protocol it goes at once, since a
	// server cannot put into the set what was before its time.
	l.srv.Close()
	l.grpc.GracefulStop()
	l.serve()
	l.give(c2, realAssignment(t, "c2", v2), lis, realRoute(t, "c2", "*"))
	l.answers("v2")
	eventually(t, "the end of the old cluster", func() bool { return !strings.Contains(l.dump(), `"name": "c1"`) })
	stop()
	if lost := l.failed.Load(); lost > 0 && apiType == "DELTA_GRPC" {
		t.Errorf("%d requests failed", lost)
	}
	l.give()
	eventually(t, "an empty proxy", func() bool {
		active, err := fetch(t.Context(), l.admin, "http://admin/listeners")
		return err == nil && active == "" && !strings.Contains(l.dump(), `"name": "c2"`)
	})
}
