// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package live_test

import (
	"context"
	"net"
	"net/http"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthgrpc "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
)

// TestHTTP2AndGRPC calls an HTTP/2 and a gRPC application; the latter is checked actively.
func TestHTTP2AndGRPC(t *testing.T) {
	s := newSite(t, map[string]string{
		"00-mesh.yaml": meshOf("DROP_ALL"),
		"10-web.yaml":  nodeOf("web", plain, backends("h2", "rpc", "one")),
		"20-nodes.yaml": docs(
			nodeOf("h2", "{portMapping: {port: 8080, protocol: http2}}"),
			nodeOf("rpc", "{portMapping: {port: 9000, protocol: grpc}, healthCheck: {protocol: grpc, port: 9000, healthyThreshold: 2, unhealthyThreshold: 2, timeoutMillis: 2000, intervalMillis: 5000}}"),
		),
		"30-services.yaml": docs(
			routed("h2", "{port: 8080, protocol: http2}", "{name: all, http2Route: {match: {prefix: /}, action: {weightedTargets: [{virtualNodeRef: {name: h2}, weight: 1}]}}}"),
			provided("rpc", "rpc"),
			routed("one", "{port: 9000, protocol: grpc}",
				"{name: watch, grpcRoute: {match: {serviceName: grpc.health.v1.Health, methodName: Check}, action: {weightedTargets: [{virtualNodeRef: {name: rpc}, weight: 1}]}}}"),
		),
	})
	h2 := s.pod("h2").serve(8080, func(w http.ResponseWriter, r *http.Request) { _, _ = w.Write([]byte(r.Proto)) })
	rpc := s.pod("rpc")
	server := grpc.NewServer()
	healthgrpc.RegisterHealthServer(server, health.NewServer())
	l := rpc.listen(9000)
	go func() { _ = server.Serve(l) }() // it ends with its listener
	rpc.ends = append(rpc.ends, server.Stop)
	s.service("h2", 8080, h2)
	s.service("rpc", 9000, rpc)
	s.service("one", 9000)
	h2.sidecar("h2", 8080)
	rpc.sidecar("rpc", 9000)
	web := s.pod("web").sidecar("web", 8080)
	s.settle()

	t.Run("HTTP/2 end to end", func(t *testing.T) {
		if got := call(web.client(false, true), "h2", "/"); got.String() != "200 HTTP/2.0" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("an HTTP/1 client of an HTTP/2 application", func(t *testing.T) {
		if got := call(web.client(false, false), "h2", "/"); got.String() != "200 HTTP/2.0" {
			t.Errorf("got %s", got)
		}
	})
	check := func(service string) error {
		conn := web.grpc(service, "9000")
		defer func() { _ = conn.Close() }()
		_, err := healthgrpc.NewHealthClient(conn).Check(t.Context(), &healthgrpc.HealthCheckRequest{}, grpc.WaitForReady(true))
		return err
	}
	t.Run("gRPC to a node", func(*testing.T) {
		s.eventually("a first health check", func() bool { return check("rpc") == nil })
	})
	t.Run("gRPC by method", func(t *testing.T) {
		if err := check("one"); err != nil {
			t.Errorf("Check: %v", err)
		}
		conn := web.grpc("one", "9000")
		defer func() { _ = conn.Close() }()
		_, err := healthgrpc.NewHealthClient(conn).List(t.Context(), &healthgrpc.HealthListRequest{}, grpc.WaitForReady(true))
		if got := status.Code(err); got != codes.Unimplemented {
			t.Errorf("a method that no route names: %v (%v), want Unimplemented", got, err)
		}
	})
}

// grpc connects to a service of namespace shop.
func (p *pod) grpc(service, port string) *grpc.ClientConn {
	p.s.t.Helper()
	name := net.JoinHostPort(service+".shop.svc.cluster.local", port)
	conn, err := grpc.NewClient("passthrough:"+net.JoinHostPort(p.s.address(service, false).String(), port), grpc.WithAuthority(name),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return p.dial(ctx, address) }))
	if err != nil {
		p.s.t.Fatal(err)
	}
	return conn
}
