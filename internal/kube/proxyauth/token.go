// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package proxyauth

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// mostTokens bounds the memory of what the API server said.
	mostTokens = 50_000
	// refusalLife is how long a refusal is remembered, and unknownLife a good token whose end cannot be read.
	refusalLife = 10 * time.Second
	unknownLife = time.Minute
	// reviewLimit is how long the API server may take.
	reviewLimit = 10 * time.Second
	// longestToken is the most bytes that a token may have.
	longestToken = 16 << 10
)

// What the API server adds to the user of a token that is bound to a pod.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
	userPrefix   = "system:serviceaccount:"
)

// mend is what whoever comes without a good token should do.
const mend = "the proxy must send a token of its pod's ServiceAccount for the audience " + Audience + ", which the injector mounts and --xds-token-file or TULLE_XDS_TOKEN_FILE of tulle-agent names"

// bearer is the token that came with a stream.
func bearer(ctx context.Context) (string, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	values := md.Get("authorization")
	if len(values) == 0 {
		return "", status.Error(codes.Unauthenticated, "no token: "+mend)
	}
	scheme, token, _ := strings.Cut(values[0], " ")
	if len(values) > 1 || !strings.EqualFold(scheme, "Bearer") || token == "" || len(token) > longestToken {
		return "", status.Error(codes.Unauthenticated, "the authorization header is not one bearer token: "+mend)
	}
	return token, nil
}

// tokens remembers what the API server said of tokens, by their hashes.
type tokens struct {
	opts   Options
	flight singleflight.Group
	// silent is set while the API server does not answer.
	silent atomic.Bool

	mu    sync.Mutex
	known map[[sha256.Size]byte]answer
}

// answer holds until a time. err is a status that refuses.
type answer struct {
	holder holder
	err    error
	until  time.Time
}

func newTokens(o Options) *tokens { return &tokens{opts: o, known: map[[sha256.Size]byte]answer{}} }

// review says for which pod a token was made. Many that ask for the same token at once ask the API server once.
func (t *tokens) review(ctx context.Context, token string) (holder, error) {
	hash := sha256.Sum256([]byte(token))
	if a, ok := t.remembered(hash); ok {
		return a.holder, a.err
	}
	result := t.flight.DoChan(string(hash[:]), func() (any, error) {
		// The answer is for all who wait, so it does not end with the one who asked first.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), reviewLimit)
		defer cancel()
		a, err := t.ask(ctx, token)
		if err == nil {
			t.remember(hash, a)
		}
		return a, err
	})
	select {
	case <-ctx.Done():
		return holder{}, status.FromContextError(ctx.Err()).Err()
	case r := <-result:
		if r.Err != nil {
			return holder{}, r.Err
		}
		a, _ := r.Val.(answer)
		return a.holder, a.err
	}
}

func (t *tokens) remembered(hash [sha256.Size]byte) (answer, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, ok := t.known[hash]
	return a, ok && t.opts.Clock.Now().Before(a.until)
}

func (t *tokens) remember(hash [sha256.Size]byte, a answer) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.known) >= mostTokens {
		t.sweep()
	}
	t.known[hash] = a
}

// sweep makes room: what is over goes, else anything, for the API server can be asked again.
func (t *tokens) sweep() {
	now := t.opts.Clock.Now()
	for hash, a := range t.known {
		if !now.Before(a.until) {
			delete(t.known, hash)
		}
	}
	for hash := range t.known {
		if len(t.known) < mostTokens {
			return
		}
		delete(t.known, hash)
	}
}

// ask asks the API server. An error means that it gave no answer.
func (t *tokens) ask(ctx context.Context, token string) (answer, error) {
	review, err := t.opts.Reviews.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{Audience}},
	}, metav1.CreateOptions{})
	if err != nil {
		if !t.silent.Swap(true) { // said once
			t.opts.Logger.Error("the API server does not review tokens, so proxies whose tokens are not known yet wait", slog.Any("error", err))
		}
		return answer{}, status.Errorf(codes.Unavailable, "the API server does not review tokens now: %v", err)
	}
	if t.silent.Swap(false) {
		t.opts.Logger.Info("the API server reviews tokens again")
	}
	now := t.opts.Clock.Now()
	who, why := podOf(&review.Status)
	if why != "" {
		return answer{err: status.Error(codes.Unauthenticated, why+": "+mend), until: now.Add(refusalLife)}, nil
	}
	until, ok := expiry(token)
	if !ok {
		until = now.Add(unknownLife)
	}
	return answer{holder: who, until: until}, nil
}

// podOf reads the pod from the API server's answer, or says why there is none.
func podOf(s *authenticationv1.TokenReviewStatus) (who holder, why string) {
	if !s.Authenticated {
		if s.Error != "" {
			return holder{}, "the API server does not accept the token: " + s.Error
		}
		return holder{}, "the API server does not accept the token"
	}
	if !slices.Contains(s.Audiences, Audience) {
		return holder{}, "the token was made for another audience"
	}
	account, ok := strings.CutPrefix(s.User.Username, userPrefix)
	namespace, _, found := strings.Cut(account, ":")
	name, uid := s.User.Extra[extraPodName], s.User.Extra[extraPodUID]
	if !ok || !found || namespace == "" || len(name) != 1 || len(uid) != 1 {
		return holder{}, "the token is that of " + s.User.Username + " and not bound to a pod"
	}
	return holder{namespace: namespace, pod: name[0], uid: uid[0]}, ""
}

// expiry reads the end of a token that the API server has accepted.
func expiry(token string) (time.Time, bool) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return time.Time{}, false
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return time.Time{}, false
	}
	var claims struct {
		Expiry int64 `json:"exp"`
	}
	if err := json.Unmarshal(payload, &claims); err != nil || claims.Expiry <= 0 {
		return time.Time{}, false
	}
	return time.Unix(claims.Expiry, 0), true
}
