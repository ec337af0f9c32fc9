// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package relay

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/testing/protocmp"
	"google.golang.org/protobuf/types/known/anypb"
)

// plane is a control plane whose streams do what a test says.
type plane struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer

	delta func(discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error
	sotw  func(discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error
}

func (p *plane) DeltaAggregatedResources(s discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return p.delta(s)
}

func (p *plane) StreamAggregatedResources(s discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
	return p.sotw(s)
}

// serve runs a control plane on a socket until the test ends or the returned function is called.
func serve(t *testing.T, socket string, p *plane) (stop func()) {
	t.Helper()
	listener := listen(t, socket)
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, p)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // it ends when it is stopped
	}()
	stop = sync.OnceFunc(func() {
		server.Stop()
		<-done
	})
	t.Cleanup(stop)
	return stop
}

func listen(t *testing.T, socket string) net.Listener {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	return listener
}

// through returns a client of a relay to the sockets.
func through(t *testing.T, sockets ...string) discoveryv3.AggregatedDiscoveryServiceClient {
	t.Helper()
	endpoints, err := ParseEndpoints("unix://" + strings.Join(sockets, ",unix://"))
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "ads.sock")
	r := New(Options{Endpoints: endpoints, Log: slog.New(slog.DiscardHandler)})
	listener := listen(t, socket)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- r.Serve(ctx, listener) }()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(8<<20)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = conn.Close()
		cancel()
		if err := <-done; err != nil {
			t.Errorf("relay: %v", err)
		}
	})
	return discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
}

func TestRelayCarriesMessagesHeadersAndStatusBothWays(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "plane.sock")
	details, err := status.New(codes.NotFound, "no such node").WithDetails(&errdetails.ErrorInfo{Reason: "UNKNOWN_NODE"})
	if err != nil {
		t.Fatal(err)
	}
	big := strings.Repeat("x", 6<<20) // more than grpc's default limit of 4 MiB
	serve(t, socket, &plane{delta: func(s discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
		md, _ := metadata.FromIncomingContext(s.Context())
		if err := s.SendHeader(metadata.Pairs("seen", strings.Join(md.Get("from-envoy"), ","))); err != nil {
			return err
		}
		for range 3 {
			request, err := s.Recv()
			if err != nil {
				return err
			}
			if err := s.Send(&discoveryv3.DeltaDiscoveryResponse{Nonce: request.GetResponseNonce(), TypeUrl: big, RemovedResources: request.GetResourceNamesSubscribe()}); err != nil {
				return err
			}
		}
		s.SetTrailer(metadata.Pairs("last", "word"))
		return details.Err()
	}})

	stream, err := through(t, socket).DeltaAggregatedResources(metadata.AppendToOutgoingContext(t.Context(), "from-envoy", "hello"))
	if err != nil {
		t.Fatal(err)
	}
	for _, nonce := range []string{"1", "2", "3"} {
		if err := stream.Send(&discoveryv3.DeltaDiscoveryRequest{ResponseNonce: nonce, ResourceNamesSubscribe: []string{"a", "b"}}); err != nil {
			t.Fatal(err)
		}
		got, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		want := &discoveryv3.DeltaDiscoveryResponse{Nonce: nonce, TypeUrl: big, RemovedResources: []string{"a", "b"}}
		if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
			t.Errorf("response (-want +got):\n%.500s", diff)
		}
	}
	_, err = stream.Recv()
	if diff := cmp.Diff(details.Proto(), status.Convert(err).Proto(), protocmp.Transform()); diff != "" {
		t.Errorf("status (-want +got):\n%s", diff)
	}
	header, err := stream.Header()
	if err != nil || header.Get("seen") == nil || header.Get("seen")[0] != "hello" {
		t.Errorf("header %v, %v: want seen=hello", header, err)
	}
	if last := stream.Trailer().Get("last"); len(last) != 1 || last[0] != "word" {
		t.Errorf("trailer %v: want last=word", stream.Trailer())
	}
}

func TestRelayCarriesStateOfTheWorldStreamsAndAGracefulEnd(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "plane.sock")
	serve(t, socket, &plane{sotw: func(s discoveryv3.AggregatedDiscoveryService_StreamAggregatedResourcesServer) error {
		request, err := s.Recv()
		if err != nil {
			return err
		}
		return s.Send(&discoveryv3.DiscoveryResponse{VersionInfo: request.GetVersionInfo(), Resources: []*anypb.Any{{TypeUrl: "t", Value: []byte{1}}}})
	}})
	stream, err := through(t, socket).StreamAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&discoveryv3.DiscoveryRequest{VersionInfo: "v"}); err != nil {
		t.Fatal(err)
	}
	if got, err := stream.Recv(); err != nil || got.GetVersionInfo() != "v" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("got %v, want the end with status OK", err)
	}
}

// named is a control plane that tells its name and then holds the stream.
func named(name string) *plane {
	return &plane{delta: func(s discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
		if err := s.Send(&discoveryv3.DeltaDiscoveryResponse{Nonce: name}); err != nil {
			return err
		}
		<-s.Context().Done()
		return nil
	}}
}

// who opens a stream and returns it with the name of the control plane at its other end.
func who(t *testing.T, client discoveryv3.AggregatedDiscoveryServiceClient) (discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient, string) {
	t.Helper()
	stream, err := client.DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	return stream, got.GetNonce()
}

func TestRelayMovesToAnotherEndpointWhenOneFails(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.sock"), filepath.Join(dir, "b.sock")
	stopA := serve(t, a, named("a"))
	serve(t, b, named("b"))
	client := through(t, a, b)
	stream, name := who(t, client)
	if name != "a" {
		t.Errorf("the first stream went to %s, want the first endpoint", name)
	}
	stopA()
	if _, err := stream.Recv(); status.Code(err) != codes.Unavailable {
		t.Errorf("the stream ended with %v, want Unavailable", err)
	}
	if _, name = who(t, client); name != "b" {
		t.Errorf("after the first endpoint failed the stream went to %s, want b", name)
	}
}

func TestRelayPassesOverEndpointsThatDoNotAnswer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	absent, mute, good := filepath.Join(dir, "absent.sock"), filepath.Join(dir, "mute.sock"), filepath.Join(dir, "good.sock")
	listener := listen(t, mute)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	serve(t, good, named("good"))
	if _, name := who(t, through(t, absent, mute, good)); name != "good" {
		t.Errorf("the stream went to %s", name)
	}
}

func TestRelayEndsAStreamThatNoEndpointTakesAndTakesTheNextOne(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "plane.sock")
	client := through(t, socket)
	stream, err := client.DeltaAggregatedResources(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = stream.Recv()
	if want := "no endpoint of the control plane answers: unix://" + socket; status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), want) {
		t.Errorf("the stream ended with %v, want Unavailable and %q", err, want)
	}
	serve(t, socket, named("late"))
	if _, name := who(t, client); name != "late" {
		t.Errorf("the stream went to %s", name)
	}
}

func TestParseEndpoints(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		list    string
		want    []string
		wantErr string
	}{
		"loopback of both families": {list: "127.0.0.1:18000, [::1]:18000", want: []string{"127.0.0.1:18000", "[::1]:18000"}},
		"localhost":                 {list: "localhost:1", want: []string{"localhost:1"}},
		"a unix socket":             {list: "unix:///run/x.sock,127.9.9.9:5", want: []string{"unix:///run/x.sock", "127.9.9.9:5"}},
		"nothing":                   {list: " , ", wantErr: "no endpoint of the control plane"},
		"the network":               {list: "10.0.0.1:18000,tulle.tulle-system:443", want: []string{"10.0.0.1:18000", "tulle.tulle-system:443"}},
		"no host":                   {list: ":18000", wantErr: "want HOST:PORT or unix:///PATH"},
		"no port":                   {list: "127.0.0.1", wantErr: "want HOST:PORT or unix:///PATH"},
		"a port out of range":       {list: "127.0.0.1:70000", wantErr: "is not a port from 1 to 65535"},
		"a relative socket":         {list: "unix://run/x.sock", wantErr: "must be absolute"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoints, err := ParseEndpoints(tt.list)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("error %v, want %q in it", err, tt.wantErr)
				}
				return
			}
			var got []string
			for _, e := range endpoints {
				got = append(got, e.String())
			}
			if diff := cmp.Diff(tt.want, got); err != nil || diff != "" {
				t.Errorf("error %v, endpoints (-want +got):\n%s", err, diff)
			}
		})
	}
}
