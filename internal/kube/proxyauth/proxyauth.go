// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package proxyauth decides which proxy may be which virtual node or gateway: a proxy shows the ServiceAccount token of its pod, the API server says whose
// it is, and what the pod belongs to is decode's to say. The command line gives an Authenticator to the delivery of configuration.
// What it does with the API beside reading from the controller's cache is in Rules.
package proxyauth

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	authenticationv1 "k8s.io/client-go/kubernetes/typed/authentication/v1"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/kube/roster"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Audience is what a proxy's token must be made for.
const Audience = "tulle"

// DefaultPatience is how long a proxy waits, at most, for its pod and node to be seen.
const DefaultPatience = 3 * time.Second

// Options are what an Authenticator is made from.
type Options struct {
	// Reviews asks the API server about tokens.
	Reviews authenticationv1.TokenReviewInterface
	// Reader reads Pods, Namespaces, Meshes, VirtualNodes and VirtualGateways from a cache.
	Reader client.Reader
	// Observe leads changes of a kind to a handler.
	Observe func(ctx context.Context, object client.Object, handler toolscache.ResourceEventHandler) error
	// Decode is how the control plane reads the same objects.
	Decode decode.Options
	Clock  clock.Clock
	Logger *slog.Logger
	// Patience is how long a proxy waits, at most, for its pod and node to be seen; DefaultPatience when 0.
	Patience time.Duration
}

// Authenticator knows the pods of the proxies that are connected. It is safe for concurrent use.
type Authenticator struct {
	opts    Options
	tokens  *tokens
	rosters *rosters

	// changed is told when there is something to look at.
	changed chan struct{}

	mu       sync.Mutex
	sessions map[client.ObjectKey]map[*session]struct{} // by pod
	// pods are those to look at, and all says that every one is.
	pods map[client.ObjectKey]struct{}
	all  bool
}

// New makes an authenticator, which must also Run.
func New(o Options) *Authenticator {
	o.Patience = cmp.Or(o.Patience, DefaultPatience)
	return &Authenticator{
		opts: o, tokens: newTokens(o), changed: make(chan struct{}, 1),
		sessions: map[client.ObjectKey]map[*session]struct{}{}, pods: map[client.ObjectKey]struct{}{},
		rosters: newRosters(func(ctx context.Context, namespace string) (*decode.Roster, error) {
			return roster.Read(ctx, o.Reader, o.Decode, namespace)
		}),
	}
}

// Rules are all that this package does with the API beyond the controller's cache, in the cluster's role.
func Rules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}}}
}

// holder is the pod that a token was made for.
type holder struct {
	namespace, pod, uid string
}

func (h holder) key() client.ObjectKey { return client.ObjectKey{Namespace: h.namespace, Name: h.pod} }

// String names the pod.
func (h holder) String() string { return "pod " + h.namespace + "/" + h.pod }

// Authenticate lets a proxy be a node or gateway that its pod belongs to; it is an xds.Authenticator.
func (a *Authenticator) Authenticate(ctx context.Context, nodeID string, revoke func(error)) (string, error) {
	token, err := bearer(ctx)
	if err != nil {
		return "", err
	}
	who, err := a.tokens.review(ctx, token)
	if err != nil {
		return "", err
	}
	key, err := mesh.ParseProxyID(nodeID)
	if err != nil {
		return "", status.Errorf(codes.PermissionDenied, "%s: %v", who, err)
	}
	s := &session{holder: who, node: key, revoke: revoke}
	if err := a.settle(ctx, s); err != nil {
		return "", err
	}
	a.register(ctx, s)
	// Asked once more, since what changed before the session was registered is told to nobody.
	if err := a.check(ctx, s); err != nil {
		a.forget(s)
		return "", err
	}
	return who.String(), nil
}

// poll is how often a pod that is not seen yet is looked for.
const poll = 100 * time.Millisecond

// settle waits briefly for what a cache may not have seen yet: the pod, or the node that it belongs to.
func (a *Authenticator) settle(ctx context.Context, s *session) error {
	deadline := a.opts.Clock.Now().Add(a.opts.Patience)
	for {
		err := a.check(ctx, s)
		if err == nil || !a.opts.Clock.Now().Before(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-a.opts.Clock.After(poll):
		}
	}
}

// check says why the session's pod may not be the node now; nil if it may.
func (a *Authenticator) check(ctx context.Context, s *session) error {
	pod := &corev1.Pod{}
	err := a.opts.Reader.Get(ctx, s.key(), pod)
	if apierrors.IsNotFound(err) || (err == nil && string(pod.UID) != s.uid) {
		return status.Errorf(codes.Unauthenticated, "%s is not there any more, or not seen yet", s.holder)
	}
	if err != nil {
		return status.Errorf(codes.Unavailable, "the control plane has not read the cluster yet: %v", err)
	}
	r, err := a.rosters.of(ctx, s.namespace)
	if err != nil {
		return status.Errorf(codes.Unavailable, "the control plane has not read the cluster yet: %v", err)
	}
	belongs := r.Membership(pod)
	if belongs.Has(s.node) {
		return nil
	}
	return status.Error(codes.PermissionDenied, fmt.Sprintf("%s may not be %s: ", s.holder, s.node)+reason(belongs))
}

// reason says what a pod belongs to instead, and what to do.
func reason(belongs decode.Membership) string {
	switch {
	case len(belongs.Members) > 0:
		return "it belongs to " + decode.Names(belongs.Members) + "; restart the pod, so that its proxy is told so"
	case len(belongs.Idle) > 0:
		return "it belongs to " + decode.Names(belongs.Idle) + ", which is not in force: " + belongs.Idle[0].Idle
	default:
		return "no podSelector of a VirtualNode or VirtualGateway of its namespace selects it; correct its labels or the selector"
	}
}
