// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package proxyauth_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/internal/kube/proxyauth"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/test/apiserver"
)

var server apiserver.Shared

func TestMain(m *testing.M) {
	kube.LogTo(slog.New(slog.DiscardHandler))
	os.Exit(server.Main(m))
}

// site is a cluster with an authenticator that reads it through a controller's cache. The tests share the cluster, each with a namespace of its own.
type site struct {
	client.Client

	t         *testing.T
	namespace string
	clients   kubernetes.Interface
	auth      *proxyauth.Authenticator
	wire      *wire
	clock     *steps
}

// wire is the way to the API server for token reviews, which can be cut, and counts them.
type wire struct {
	next http.RoundTripper
	cut  atomic.Bool
	seen atomic.Int64
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.cut.Load() {
		return nil, errors.New("the wire is cut")
	}
	w.seen.Add(1)
	return w.next.RoundTrip(r)
}

// steps is the machine's clock, which a test can put forward.
type steps struct {
	clock.Real

	ahead atomic.Int64
}

func (s *steps) Now() time.Time { return s.Real.Now().Add(time.Duration(s.ahead.Load())) }

func newSite(t *testing.T, namespace string, patience time.Duration) *site {
	t.Helper()
	config := server.Get(t).Config
	scheme, err := kube.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	s := &site{t: t, namespace: namespace, wire: &wire{}, clock: &steps{}}
	if s.Client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		t.Fatal(err)
	}
	reviewing := rest.CopyConfig(config)
	reviewing.Wrap(func(next http.RoundTripper) http.RoundTripper {
		s.wire.next = next
		return s.wire
	})
	if s.clients, err = kubernetes.NewForConfig(reviewing); err != nil {
		t.Fatal(err)
	}
	synced := make(chan struct{})
	var once sync.Once
	controller, err := kube.New(kube.Options{
		Config: config, Namespace: "default", Identity: t.Name(), Clock: clock.Real{}, Logger: slog.New(slog.DiscardHandler),
		LeaderElection: true, // for ever behind the first one: it writes nothing that matters here
		Apply:          func(context.Context, mesh.Changes) { once.Do(func() { close(synced) }) },
		Check:          func() []mesh.Finding { return nil },
		Refusals:       func(context.Context) []mesh.Finding { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	s.auth = proxyauth.New(proxyauth.Options{
		Reviews: s.clients.AuthenticationV1().TokenReviews(), Reader: controller.Reader(), Observe: controller.Observe,
		Clock: s.clock, Logger: slog.New(slog.DiscardHandler), Patience: patience,
	})
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var group sync.WaitGroup
	for _, run := range []func(context.Context) error{controller.Run, s.auth.Run} {
		group.Go(func() {
			if err := run(ctx); err != nil {
				t.Errorf("ended: %v", err)
			}
		})
	}
	t.Cleanup(func() {
		cancel()
		group.Wait()
	})
	select {
	case <-synced:
	case <-time.After(time.Minute):
		t.Fatal("the cluster is not read")
	}
	s.create(
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"mesh": namespace}}},
		&corev1.ServiceAccount{ObjectMeta: s.meta("app")},
		&v1beta2.Mesh{ObjectMeta: metav1.ObjectMeta{Name: namespace}, Spec: v1beta2.MeshSpec{
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"mesh": namespace}},
		}},
		s.node("a"), s.node("b"),
	)
	return s
}

func (s *site) create(objects ...client.Object) {
	s.t.Helper()
	for _, o := range objects {
		if err := s.Create(s.t.Context(), o); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *site) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: s.namespace, Name: name}
}

func (s *site) node(name string) *v1beta2.VirtualNode {
	return &v1beta2.VirtualNode{ObjectMeta: s.meta(name), Spec: v1beta2.VirtualNodeSpec{
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		Listeners:   []v1beta2.Listener{{PortMapping: v1beta2.PortMapping{Port: 8080, Protocol: "http"}}},
	}}
}

// pod has the label of a node.
func (s *site) pod(name, app string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: s.meta(name), Spec: corev1.PodSpec{ServiceAccountName: "app", Containers: []corev1.Container{{Name: "c", Image: "i"}}}}
	p.Labels = map[string]string{"app": app}
	return p
}

// token is a real one, made for the pod where there is one.
func (s *site) token(pod *corev1.Pod, audience string) string {
	s.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}, ExpirationSeconds: new(int64(3600))}}
	if pod != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID}
	}
	account := &corev1.ServiceAccount{ObjectMeta: s.meta("app")}
	if err := s.SubResource("token").Create(s.t.Context(), account, request); err != nil {
		s.t.Fatal(err)
	}
	return request.Status.Token
}

func (s *site) id(node string) string {
	return "mesh/" + s.namespace + "/virtualNode/" + node + "_" + s.namespace
}

// ask authenticates a stream that lasts as long as the test.
func (s *site) ask(header, nodeID string, revoke func(error)) (string, error) {
	s.t.Helper()
	md := metadata.MD{}
	if header != "" {
		md.Set("authorization", header)
	}
	return s.auth.Authenticate(metadata.NewIncomingContext(s.t.Context(), md), nodeID, revoke)
}

func unexpected(t *testing.T) func(error) {
	t.Helper()
	return func(err error) { t.Errorf("revoked: %v", err) }
}

func TestAProxyIsWhatItsPodBelongsToAndNothingElse(t *testing.T) {
	t.Parallel()
	s := newSite(t, "belong", time.Second)
	pod, lost := s.pod("a-1", "a"), s.pod("lost", "nothing")
	s.create(pod, lost)
	good := "Bearer " + s.token(pod, "tulle")
	tests := map[string]struct {
		header, node string
		code         codes.Code
		want         string
	}{
		"its node":                   {good, s.id("a"), codes.OK, "pod belong/a-1"},
		"its node's ARN":             {good, "arn:aws:appmesh:us-west-2:123456789012:mesh/belong/virtualNode/a_belong", codes.OK, "pod belong/a-1"},
		"another node":               {good, s.id("b"), codes.PermissionDenied, "pod belong/a-1 may not be VirtualNode belong/b_belong: it belongs to virtualnode/a"},
		"a gateway of the same name": {good, "mesh/belong/virtualGateway/a_belong", codes.PermissionDenied, "it belongs to virtualnode/a"},
		"a node of another mesh":     {good, "mesh/other/virtualNode/a_belong", codes.PermissionDenied, "it belongs to virtualnode/a"},
		"a node that is not there":   {good, s.id("c"), codes.PermissionDenied, "it belongs to virtualnode/a"},
		"no node":                    {good, "", codes.PermissionDenied, "pod belong/a-1: "},
		"nonsense":                   {good, "a", codes.PermissionDenied, "pod belong/a-1: "},
		"a pod of no node":           {"Bearer " + s.token(lost, "tulle"), s.id("a"), codes.PermissionDenied, "no podSelector of a VirtualNode or VirtualGateway of its namespace selects it"},
		"no token":                   {"", s.id("a"), codes.Unauthenticated, "no token: the proxy must send a token of its pod's ServiceAccount for the audience tulle"},
		"no bearer":                  {"Basic eDp4", s.id("a"), codes.Unauthenticated, "not one bearer token"},
		"an empty token":             {"Bearer ", s.id("a"), codes.Unauthenticated, "not one bearer token"},
		"a made-up token":            {"Bearer made.up.token", s.id("a"), codes.Unauthenticated, "the API server does not accept the token"},
		"a changed token":            {good[:len(good)-8] + "AAAAAAAA", s.id("a"), codes.Unauthenticated, "the API server does not accept the token"},
		"another audience":           {"Bearer " + s.token(pod, "https://kubernetes.default.svc"), s.id("a"), codes.Unauthenticated, "the API server does not accept the token"},
		"a token of no pod":          {"Bearer " + s.token(nil, "tulle"), s.id("a"), codes.Unauthenticated, "system:serviceaccount:belong:app and not bound to a pod"},
		"an administrator":           {"Bearer " + server.Get(t).Config.BearerToken, s.id("a"), codes.Unauthenticated, ""},
		"an endless token":           {"Bearer " + strings.Repeat("x", 1<<20), s.id("a"), codes.Unauthenticated, "not one bearer token"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			who, err := s.ask(tt.header, tt.node, unexpected(t))
			text := who
			if err != nil {
				text = err.Error()
			}
			if status.Code(err) != tt.code || !strings.Contains(text, tt.want) {
				t.Errorf("%v %q, want %v and %q", status.Code(err), text, tt.code, tt.want)
			}
			if err != nil && len(tt.header) > 20 && strings.Contains(text, tt.header[10:]) {
				t.Error("the token is in the message")
			}
		})
	}
}

func TestAProxyWaitsForWhatIsNotSeenYet(t *testing.T) {
	t.Parallel()
	s := newSite(t, "early", 30*time.Second)
	pod := s.pod("late-1", "late")
	s.create(pod)
	token := s.token(pod, "tulle")
	done := make(chan error, 1)
	go func() {
		_, err := s.ask("Bearer "+token, s.id("late"), unexpected(t))
		done <- err
	}()
	s.create(s.node("late")) // after the proxy
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAProxyWhosePodLeavesLosesItsStream(t *testing.T) {
	t.Parallel()
	s := newSite(t, "leave", time.Second)
	moved, deleted, orphan, stays := s.pod("moved", "a"), s.pod("deleted", "a"), s.pod("orphan", "b"), s.pod("stays", "a")
	streams := map[*corev1.Pod]chan error{}
	tokens := map[*corev1.Pod]string{}
	for pod, node := range map[*corev1.Pod]string{moved: "a", deleted: "a", orphan: "b", stays: "a"} {
		s.create(pod)
		tokens[pod] = s.token(pod, "tulle")
		ended := make(chan error, 1)
		streams[pod] = ended
		if _, err := s.ask("Bearer "+tokens[pod], s.id(node), func(err error) { ended <- err }); err != nil {
			t.Fatal(err)
		}
	}
	moved.Labels["app"] = "b"
	if err := errors.Join(s.Update(t.Context(), moved), s.Delete(t.Context(), deleted, client.GracePeriodSeconds(0)), s.Delete(t.Context(), s.node("b"))); err != nil {
		t.Fatal(err)
	}
	for pod, want := range map[*corev1.Pod]struct {
		code codes.Code
		text string
	}{
		moved: {codes.PermissionDenied, "may not be"}, deleted: {codes.Unauthenticated, "is not there any more"}, orphan: {codes.PermissionDenied, "no podSelector"},
	} {
		select {
		case err := <-streams[pod]:
			if status.Code(err) != want.code || !strings.Contains(err.Error(), want.text) {
				t.Errorf("%s: the stream ended with %v; want %v and %q", pod.Name, err, want.code, want.text)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("%s: the stream goes on", pod.Name)
		}
	}
	// A token that the API server accepted a moment ago is of no use without its pod, nor for a pod that has come under the same name.
	again := s.pod("deleted", "a")
	if _, err := s.ask("Bearer "+tokens[deleted], s.id("a"), unexpected(t)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the token of a deleted pod: %v", err)
	}
	s.create(again)
	if _, err := s.ask("Bearer "+tokens[deleted], s.id("a"), unexpected(t)); status.Code(err) != codes.Unauthenticated {
		t.Errorf("the token of a pod before this one: %v", err)
	}
	if _, err := s.ask("Bearer "+s.token(again, "tulle"), s.id("a"), unexpected(t)); err != nil {
		t.Errorf("the token of the new pod: %v", err)
	}
	select {
	case err := <-streams[stays]:
		t.Errorf("a proxy that nothing happened to lost its stream: %v", err)
	default:
	}
}

func TestTheAPIServerIsAskedOnceForAToken(t *testing.T) {
	t.Parallel()
	s := newSite(t, "once", time.Second)
	pod := s.pod("a-1", "a")
	s.create(pod)
	token := s.token(pod, "tulle")
	before := s.wire.seen.Load()
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			if _, err := s.ask("Bearer "+token, s.id("a"), unexpected(t)); err != nil {
				t.Error(err)
			}
			if _, err := s.ask("Bearer bad.bad.bad", s.id("a"), unexpected(t)); status.Code(err) != codes.Unauthenticated {
				t.Error(err)
			}
		})
	}
	group.Wait()
	if n := s.wire.seen.Load() - before; n != 2 {
		t.Errorf("%d reviews for two tokens", n)
	}

	// With the API server away, the known go on and the unknown are told to come again.
	s.wire.cut.Store(true)
	if _, err := s.ask("Bearer "+token, s.id("a"), unexpected(t)); err != nil {
		t.Errorf("a known token, with the API server away: %v", err)
	}
	fresh := s.token(pod, "tulle")
	if _, err := s.ask("Bearer "+fresh, s.id("a"), unexpected(t)); status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "does not review tokens now") {
		t.Errorf("an unknown token, with the API server away: %v", err)
	}
	s.wire.cut.Store(false)
	if _, err := s.ask("Bearer "+fresh, s.id("a"), unexpected(t)); err != nil {
		t.Errorf("once the API server is back: %v", err)
	}

	// What is known ends with the token, and a refusal soon.
	before = s.wire.seen.Load()
	s.clock.ahead.Add(int64(11 * time.Second))
	_, _ = s.ask("Bearer bad.bad.bad", s.id("a"), unexpected(t))
	_, _ = s.ask("Bearer "+token, s.id("a"), unexpected(t))
	if n := s.wire.seen.Load() - before; n != 1 {
		t.Errorf("%d reviews after 11 s; want one, of the bad token", n)
	}
	s.clock.ahead.Add(int64(time.Hour))
	_, _ = s.ask("Bearer "+token, s.id("a"), unexpected(t))
	if n := s.wire.seen.Load() - before; n != 2 {
		t.Errorf("%d reviews after an hour; want the good token to be reviewed again", n)
	}
}
