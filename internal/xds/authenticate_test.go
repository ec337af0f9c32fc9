// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tulle-mesh/tulle/internal/xds"
)

// doorman lets a client be the node that its token names.
type doorman struct {
	mu     sync.Mutex
	asked  []string
	revoke func(error)
}

var _ xds.Authenticator = (*doorman)(nil)

func (d *doorman) Authenticate(ctx context.Context, nodeID string, revoke func(error)) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked, d.revoke = append(d.asked, nodeID), revoke
	md, _ := metadata.FromIncomingContext(ctx)
	token := strings.Join(md.Get("authorization"), ",")
	switch {
	case token == "":
		return "", status.Error(codes.Unauthenticated, "no token")
	case token == "away":
		return "", errors.New("the API server is away")
	case token != nodeID:
		return "", status.Errorf(codes.PermissionDenied, "%s may not be %q", token, nodeID)
	}
	return "pod of " + token, nil
}

func (d *doorman) revoked(err error) {
	d.mu.Lock()
	revoke := d.revoke
	d.mu.Unlock()
	revoke(err)
}

// guard starts a server with groups a and b, each of one cluster.
func guard(t *testing.T) (*world, *doorman) {
	t.Helper()
	d := &doorman{}
	w := start(t, xds.Limits{}, func(o *xds.Options) { o.Authenticator = d })
	w.srv.Apply(xds.Update{Groups: map[string]*xds.Config{"a": config(eds(t, "of-a", "1")), "b": config(eds(t, "of-b", "1"))}})
	return w, d
}

func as(t *testing.T, token string) context.Context {
	t.Helper()
	if token == "" {
		return t.Context()
	}
	return metadata.AppendToOutgoingContext(t.Context(), "authorization", token)
}

func TestAClientGetsTheNodeThatItMayBe(t *testing.T) {
	t.Parallel()
	w, _ := guard(t)
	s, err := w.dial().DeltaAggregatedResources(as(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "a"}, TypeUrl: xds.ClusterType}); err != nil {
		t.Fatal(err)
	}
	m, err := s.Recv()
	if err != nil || short(m) != "cds +of-a" {
		t.Fatalf("got %v, %v", m, err)
	}
	if list := w.srv.Proxies(); len(list) != 1 || list[0].Proxy.Identity != "pod of a" {
		t.Errorf("proxies %+v; want one with the identity", list)
	}
}

func TestWhoeverMayBeAGetsNothingOfB(t *testing.T) {
	t.Parallel()
	text := structpb.NewStringValue
	metadataOfB := &structpb.Struct{Fields: map[string]*structpb.Value{
		"aws.appmesh.virtual_node": text("b"), "id": text("b"), "tulle": structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{"node": text("b")}}),
	}}
	// Every combination of the fields by which a client could say that it is b.
	var nodes []*corev3.Node
	for _, id := range []string{"", "a", "b", "b/", "/b", " b", "a/../b", "a,b", "a\x00b", "b#a"} {
		for _, cluster := range []string{"", "a", "b"} {
			for _, meta := range []*structpb.Struct{nil, {}, metadataOfB} {
				for _, locality := range []*corev3.Locality{nil, {Region: "b", Zone: "b", SubZone: "b"}} {
					nodes = append(nodes, &corev3.Node{Id: id, Cluster: cluster, Metadata: meta, Locality: locality, UserAgentName: "b"})
				}
			}
		}
	}
	nodes = append(nodes, nil)
	w, d := guard(t)
	for _, delta := range []bool{true, false} {
		for _, first := range nodes {
			for _, token := range []string{"a", "", "away"} {
				err := attempt(t, w, as(t, token), delta, first, &corev3.Node{Id: "b", Cluster: "b", Metadata: metadataOfB})
				want := map[string]codes.Code{"a": codes.PermissionDenied, "": codes.Unauthenticated, "away": codes.Unavailable}[token]
				if status.Code(err) != want {
					t.Errorf("token %q, delta %t, node %v: the stream ended with %v; want %v", token, delta, first, err, want)
				}
			}
		}
	}
	if n := w.dir.members("b"); n != 0 {
		t.Errorf("%d streams in group b", n)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if want := len(nodes) * 6; len(d.asked) != want {
		t.Errorf("the authenticator was asked %d times, want %d: once a stream", len(d.asked), want)
	}
	if cuts := see(w.rec, func(r *record) string { return fmt.Sprint(counts(r.cuts)) }); cuts != fmt.Sprint(map[xds.CutReason]int{xds.CutStranger: 2 * len(nodes), xds.CutImpostor: 2 * len(nodes)}) {
		t.Errorf("recorded cuts %s", cuts)
	}
}

func counts(list []xds.CutReason) map[xds.CutReason]int {
	out := map[xds.CutReason]int{}
	for _, r := range list {
		out[r]++
	}
	return out
}

// attempt says on one stream that it is first and then that it is another, and returns how the stream ends. It fails if anything of b comes.
func attempt(t *testing.T, w *world, ctx context.Context, delta bool, first, then *corev3.Node) error { //nolint:revive // the test comes first in this house
	t.Helper()
	client := w.dial()
	names := func(err error, list ...string) error {
		for _, name := range list {
			if strings.Contains(name, "of-b") {
				t.Errorf("%s was sent", name)
			}
		}
		return err
	}
	var stream grpc.ClientStream
	var say func(*corev3.Node)
	var hear func() error
	if delta {
		s, err := client.DeltaAggregatedResources(ctx)
		if err != nil {
			t.Fatal(err)
		}
		stream, say = s, func(n *corev3.Node) {
			_ = s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: n, TypeUrl: xds.ClusterType})
		}
		hear = func() error {
			m, err := s.Recv()
			return names(err, m.String())
		}
	} else {
		s, err := client.StreamAggregatedResources(ctx)
		if err != nil {
			t.Fatal(err)
		}
		stream, say = s, func(n *corev3.Node) { _ = s.Send(&discoveryv3.DiscoveryRequest{Node: n, TypeUrl: xds.ClusterType}) }
		hear = func() error {
			m, err := s.Recv()
			return names(err, m.String())
		}
	}
	say(first)
	if _, err := stream.Header(); err != nil {
		return err
	}
	say(then)
	for {
		if err := hear(); err != nil {
			return err
		}
	}
}

func TestAnIdentityThatNoLongerHoldsEndsTheStream(t *testing.T) {
	t.Parallel()
	w, d := guard(t)
	s, err := w.dial().DeltaAggregatedResources(as(t, "a"))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: "a"}, TypeUrl: xds.ClusterType}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	d.revoked(status.Error(codes.PermissionDenied, "the pod is gone"))
	if _, err := s.Recv(); status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "the pod is gone") {
		t.Errorf("the stream ended with %v", err)
	}
	eventually(t, "the end of the membership", func() bool { return w.dir.members("a") == 0 })
	d.revoked(errors.New("twice")) // has no effect
}

func FuzzANodeMessageNeverMakesAnImpostorAMember(f *testing.F) {
	f.Add("b", "b", "aws.appmesh.virtual_node")
	f.Add("a\x00", "", "")
	f.Fuzz(func(t *testing.T, id, cluster, key string) {
		if id == "a" {
			t.Skip("it may be a")
		}
		w, _ := guard(t)
		node := &corev3.Node{Id: strings.ToValidUTF8(id, ""), Cluster: strings.ToValidUTF8(cluster, "")}
		if node.GetId() == "a" {
			t.Skip("it may be a")
		}
		node.Metadata = &structpb.Struct{Fields: map[string]*structpb.Value{strings.ToValidUTF8(key, ""): structpb.NewStringValue("b")}}
		if err := attempt(t, w, as(t, "a"), true, node, node); status.Code(err) != codes.PermissionDenied {
			t.Errorf("the stream ended with %v", err)
		}
		if w.dir.members("a")+w.dir.members("b") != 0 {
			t.Error("it is a member")
		}
	})
}
