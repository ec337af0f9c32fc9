// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"context"
	"io"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/tulle-mesh/tulle/internal/clock"
)

// tape is a stream that plays requests and checks that what is sent can be read.
type tape struct {
	grpc.ServerStream

	ctx   context.Context //nolint:containedctx // a stream carries its context by the interface it implements
	input [][]byte

	mu    sync.Mutex
	delta bool
	bad   error
}

func (f *tape) Context() context.Context { return f.ctx }

func (f *tape) RecvMsg(m any) error {
	for len(f.input) > 0 {
		next := f.input[0]
		f.input = f.input[1:]
		if proto.Unmarshal(next, m.(proto.Message)) == nil {
			return nil
		}
	}
	return io.EOF
}

func (f *tape) SendMsg(m any) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out proto.Message = new(discoveryv3.DiscoveryResponse)
	if f.delta {
		out = new(discoveryv3.DeltaDiscoveryResponse)
	}
	if err := proto.Unmarshal(m.(*wire).parts.Materialize(), out); err != nil {
		f.bad = err
	}
	return nil
}

type anyone struct{}

func (anyone) Join(context.Context, Proxy) (string, error) { return "a", nil }
func (anyone) Leave(string)                                {}

// play runs one stream over messages, which the input holds one after the other with their lengths, while the configuration changes.
func play(t *testing.T, delta bool, input []byte) {
	t.Helper()
	now := clock.NewFake(time.Unix(0, 0))
	s := New(Options{Director: anyone{}, Clock: now, Limits: Limits{Names: 100, NameLength: 100, Burst: 50, Unacked: 2}})
	apply := func(tag string, extra ...string) {
		c := &Config{}
		u := Update{Groups: map[string]*Config{"a": c}, Endpoints: map[string]*Resource{}}
		for _, n := range append([]string{"c", "d"}, extra...) {
			cl, err := NewResource(n, &clusterv3.Cluster{Name: n, AltStatName: tag}, Traits{Endpoints: n, Warms: n == "d"})
			if err != nil {
				t.Fatal(err)
			}
			r, err := NewResource(n, &routev3.RouteConfiguration{Name: n, InternalOnlyHeaders: []string{tag}}, Traits{Needs: []string{n}})
			if err != nil {
				t.Fatal(err)
			}
			l, err := NewResource(n, &listenerv3.Listener{Name: n, StatPrefix: tag}, Traits{Needs: []string{n}})
			if err != nil {
				t.Fatal(err)
			}
			c.Clusters, c.Routes, c.Listeners = append(c.Clusters, cl), append(c.Routes, r), append(c.Listeners, l)
			if u.Endpoints[n], err = NewResource(n, &endpointv3.ClusterLoadAssignment{ClusterName: n}, Traits{}); err != nil {
				t.Fatal(err)
			}
		}
		s.Apply(u)
	}
	apply("1")
	f := &tape{ctx: t.Context(), delta: delta}
	for len(input) > 0 {
		m, n := protowire.ConsumeBytes(input)
		if n < 0 {
			break
		}
		f.input = append(f.input, m)
		input = input[n:]
	}
	done := make(chan error, 1)
	go func() { done <- s.serve(f, delta) }()
	apply("2", "e")
	apply("1")
	err := <-done
	now.Advance(time.Minute) // ends the watch over streams
	if err != nil && err.Error() == "rpc error: code = Internal desc = fault of the control plane" {
		t.Fatal(err)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.bad != nil {
		t.Fatalf("a response that cannot be read: %v", f.bad)
	}
}

func FuzzDeltaRequests(f *testing.F) {
	f.Add(script(f,
		&discoveryv3.DeltaDiscoveryRequest{Node: nodeOf("n"), TypeUrl: ClusterType, InitialResourceVersions: map[string]string{"c": "x", "z": "y"}},
		&discoveryv3.DeltaDiscoveryRequest{TypeUrl: EndpointType, ResourceNamesSubscribe: []string{"c", "d", "z"}, ResponseNonce: "1"},
		&discoveryv3.DeltaDiscoveryRequest{TypeUrl: ListenerType, ResourceNamesSubscribe: []string{"*", "c"}, ResourceNamesUnsubscribe: []string{"*"}},
		&discoveryv3.DeltaDiscoveryRequest{TypeUrl: ClusterType, ResponseNonce: "1"},
		&discoveryv3.DeltaDiscoveryRequest{TypeUrl: RouteType, ResourceNamesSubscribe: []string{"c"}},
	))
	f.Add(script(f, &discoveryv3.DeltaDiscoveryRequest{TypeUrl: "none"}))
	f.Fuzz(func(t *testing.T, input []byte) { play(t, true, input) })
}

func FuzzSotWRequests(f *testing.F) {
	f.Add(script(f,
		&discoveryv3.DiscoveryRequest{Node: nodeOf("n"), TypeUrl: ClusterType, VersionInfo: "x"},
		&discoveryv3.DiscoveryRequest{TypeUrl: EndpointType, ResourceNames: []string{"c", "d", "z"}},
		&discoveryv3.DiscoveryRequest{TypeUrl: ListenerType, ResourceNames: []string{"*", "c"}},
		&discoveryv3.DiscoveryRequest{TypeUrl: ListenerType, ResponseNonce: "3"},
		&discoveryv3.DiscoveryRequest{TypeUrl: ClusterType, ResponseNonce: "1"},
		&discoveryv3.DiscoveryRequest{TypeUrl: RouteType, ResourceNames: []string{"c"}},
	))
	f.Fuzz(func(t *testing.T, input []byte) { play(t, false, input) })
}

func nodeOf(id string) *corev3.Node { return &corev3.Node{Id: id} }

func script(f *testing.F, ms ...proto.Message) []byte {
	f.Helper()
	var b []byte
	for _, m := range ms {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		b = protowire.AppendBytes(b, raw)
	}
	return b
}
