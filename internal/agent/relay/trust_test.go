// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package relay

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// certified makes a certificate for a name, which is its own root, and the root's PEM.
func certified(t *testing.T, name string) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Unix(0, 0), NotAfter: time.Unix(1<<33, 0), IsCA: true, BasicConstraintsValid: true,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}))
}

// secured runs a control plane over TLS on an address of this machine, "127.0.0.x:port" with port 0 for any, and returns the address.
func secured(t *testing.T, address string, certificate tls.Certificate, p *plane) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, MaxVersion: 0})))
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, p)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener) // it ends when it is stopped
	}()
	t.Cleanup(func() {
		server.Stop()
		<-done
	})
	return listener.Addr().String()
}

// relayed returns a client of a relay with the options.
func relayed(t *testing.T, list string, o Options) discoveryv3.AggregatedDiscoveryServiceClient {
	t.Helper()
	var err error
	if o.Endpoints, err = ParseEndpoints(list); err != nil {
		t.Fatal(err)
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	socket := filepath.Join(t.TempDir(), "ads.sock")
	listener := listen(t, socket)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	r := New(o)
	go func() { done <- r.Serve(ctx, listener) }()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
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

// shows is a control plane that says what authorization a stream came with, and ends it.
func shows() *plane {
	return &plane{delta: func(s discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
		md, _ := metadata.FromIncomingContext(s.Context())
		return s.Send(&discoveryv3.DeltaDiscoveryResponse{Nonce: strings.Join(md.Get("authorization"), ",")})
	}}
}

func TestEachStreamCarriesTheTokenOfItsTimeOverTLS(t *testing.T) {
	t.Parallel()
	certificate, root := certified(t, "plane.system.svc")
	address := secured(t, "127.0.0.1:0", certificate, shows())
	dir := t.TempDir()
	ca, token := filepath.Join(dir, "ca.crt"), filepath.Join(dir, "token")
	write := func(path, text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(ca, root)
	for name, roots := range map[string]string{"roots in a file": ca, "roots as text": root} {
		client := relayed(t, address, Options{Trust: Trust{CA: roots, ServerName: "plane.system.svc", TokenFile: token}})
		for _, now := range []string{"first", "second"} {
			write(token, now+"\n")
			ctx := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer Envoy's own")
			s, err := client.DeltaAggregatedResources(ctx)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.Recv(); err != nil || got.GetNonce() != "Bearer "+now {
				t.Errorf("%s: came with %q, %v; want the token %q", name, got.GetNonce(), err, now)
			}
			if _, err := s.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("%s: the stream ended with %v", name, err)
			}
		}
		for text, want := range map[string]string{"": "token is empty", "gone": "no token to show to the control plane: open "} {
			write(token, text)
			if text == "gone" {
				if err := os.Remove(token); err != nil {
					t.Fatal(err)
				}
			}
			if err := refusedBy(t, client); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: without a token the stream ended with %v", name, err)
			}
		}
	}
}

// refusedBy is the end of a stream that gets nothing.
func refusedBy(t *testing.T, client discoveryv3.AggregatedDiscoveryServiceClient) error {
	t.Helper()
	s, err := client.DeltaAggregatedResources(t.Context())
	if err != nil {
		return err
	}
	got, err := s.Recv()
	if err == nil {
		t.Errorf("got %v; want no answer", got)
	}
	return err
}

func TestAControlPlaneThatIsNotTheRightOneGetsNoToken(t *testing.T) {
	t.Parallel()
	certificate, root := certified(t, "plane.system.svc")
	_, other := certified(t, "plane.system.svc")
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	asked := &plane{delta: func(discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
		t.Error("a stream came through")
		return nil
	}}
	old := certificate
	tests := map[string]struct {
		trust Trust
		want  string
	}{
		"another authority": {Trust{CA: other, ServerName: "plane.system.svc", TokenFile: token}, "restart the pod to get its roots"},
		"another name":      {Trust{CA: root, ServerName: "plane.other.svc", TokenFile: token}, "not plane.other.svc"},
		"no name":           {Trust{CA: root, TokenFile: token}, "127.0.0.1"},
		"roots that went":   {Trust{CA: filepath.Join(t.TempDir(), "gone"), TokenFile: token}, "roots of the control plane's certificate: open "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log bytes.Buffer
			client := relayed(t, secured(t, "127.0.0.1:0", old, asked), Options{Trust: tt.trust, Log: slog.New(slog.NewTextHandler(&log, nil))})
			if err := refusedBy(t, client); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("the stream ended with %v; want %q", err, tt.want)
			}
			if strings.Contains(log.String(), "secret") {
				t.Error("the token is in the log")
			}
		})
	}
}

func TestTLSBelow13IsRefused(t *testing.T) {
	t.Parallel()
	certificate, root := certified(t, "plane")
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12, NextProtos: []string{"h2"},
	})
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			_, _ = io.Copy(io.Discard, c)
			_ = c.Close()
		}
	}()
	t.Cleanup(func() { _ = listener.Close() })
	client := relayed(t, listener.Addr().String(), Options{Trust: Trust{CA: root, ServerName: "plane"}})
	if err := refusedBy(t, client); !strings.Contains(err.Error(), "protocol version") {
		t.Errorf("the stream ended with %v", err)
	}
}

func TestWhereOneReplicaGoesTheOthersOfItsNameAreTriedAtOnce(t *testing.T) {
	t.Parallel()
	certificate, root := certified(t, "plane")
	// Three addresses of one name, on one port: the first of them decides which.
	leave := make(chan string)
	replica := func(name string) *plane {
		return &plane{delta: func(s discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
			if err := s.Send(&discoveryv3.DeltaDiscoveryResponse{Nonce: name}); err != nil {
				return err
			}
			select {
			case <-leave:
			case <-s.Context().Done():
			}
			return nil
		}}
	}
	hosts := []string{"127.0.0.1", "127.0.0.2", "127.0.0.3"}
	_, port, _ := net.SplitHostPort(secured(t, hosts[0]+":0", certificate, replica(hosts[0])))
	for _, host := range hosts[1:] {
		secured(t, net.JoinHostPort(host, port), certificate, replica(host))
	}
	client := relayed(t, "plane:"+port, Options{Trust: Trust{CA: root}, Lookup: func(_ context.Context, host string) ([]netip.Addr, error) {
		if host != "plane" {
			t.Errorf("looked up %q", host)
		}
		// One of the addresses answers nothing; the order is the resolver's whim.
		list := []netip.Addr{netip.MustParseAddr("127.0.0.9")}
		for _, h := range hosts {
			list = append(list, netip.MustParseAddr(h))
		}
		return list, nil
	}})
	var seen []string
	for range 6 {
		s, name := who(t, client)
		seen = append(seen, name)
		leave <- name
		if _, err := s.Recv(); !errors.Is(err, io.EOF) {
			t.Errorf("the stream ended with %v", err)
		}
	}
	if !slices.Equal(seen[:3], seen[3:]) || len(slices.Compact(slices.Sorted(slices.Values(seen[:3])))) != 3 {
		t.Errorf("streams went to %v; want each replica in turn", seen)
	}
}

func TestPlainTextNeverLeavesTheMachine(t *testing.T) {
	t.Parallel()
	_, root := certified(t, "plane")
	tests := map[string]struct {
		list  string
		trust Trust
		want  string
	}{
		"loopback and sockets":          {list: "127.0.0.1:1,[::1]:1,localhost:1,unix:///x"},
		"an address of the network":     {list: "10.0.0.1:443", want: `endpoint "10.0.0.1:443": plain text goes to loopback addresses and unix sockets alone`},
		"a name among sockets":          {list: "unix:///x,plane.system.svc:443", want: `endpoint "plane.system.svc:443": plain text`},
		"a name that looks like home":   {list: "127.0.0.1.example.com:443", want: "plain text"},
		"every address of the machine":  {list: "0.0.0.0:443", want: "plain text"},
		"a name with roots":             {list: "plane.system.svc:443", trust: Trust{CA: root}},
		"roots that are none":           {list: "127.0.0.1:1", trust: Trust{CA: "-----BEGIN NOTHING-----"}, want: "there is no certificate in the PEM"},
		"roots that are not there":      {list: "127.0.0.1:1", trust: Trust{CA: "/does/not/exist"}, want: "open /does/not/exist"},
		"a token in plain text":         {list: "127.0.0.1:1", trust: Trust{TokenFile: "/t"}, want: "a token is sent over TLS alone"},
		"a token and roots, for a name": {list: "plane:443", trust: Trust{CA: root, TokenFile: "/t"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoints, err := ParseEndpoints(tt.list)
			if err != nil {
				t.Fatal(err)
			}
			err = tt.trust.Check(endpoints)
			if (err != nil) != (tt.want != "") || (err != nil && !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}
