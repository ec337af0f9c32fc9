// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tulle-mesh/tulle/internal/admission"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/identity"
	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/internal/kube/proxyauth"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// guard is what stands between the controller and everybody else: its certificates, and the authentication of proxies.
type guard struct {
	// identity is nil where nothing is served with its certificate.
	identity *identity.Identity
	// proxies is nil where proxies connect in plaintext, on this machine.
	proxies *proxyauth.Authenticator
	// passed is set once nothing is waited for, for good: who overwrites a webhook later must not take the proxies' control plane away.
	passed atomic.Bool
	// told is when it had passed at first, and early says that it was said to be ready before the cluster was read.
	told  atomic.Pointer[time.Time]
	early atomic.Bool

	clock  clock.Clock
	logger *slog.Logger
}

// guard makes what the flags ask for.
func (o controllerOptions) guard(env Env, config *rest.Config, controller *kube.Controller, logger *slog.Logger) (*guard, error) {
	g := &guard{clock: env.Clock, logger: logger}
	remote, own := !staysHere(o.xds), o.webhook != "" && o.certificates == ""
	if remote || own {
		options := identity.ForController(ownNamespace(env, o), o.mesh.ClusterDomain)
		options.Config, options.Clock, options.Logger, options.Owner = config, env.Clock, logger, o.deployment
		options.Await = awaited(env)
		if !own {
			options.MutatingWebhooks, options.ValidatingWebhooks, options.Definitions = nil, nil, nil
		}
		var err error
		if g.identity, err = identity.New(options); err != nil {
			return nil, err
		}
	}
	if remote {
		// After a restart all proxies come at once, each with a token that nobody knows yet.
		reviewing := rest.CopyConfig(config)
		reviewing.QPS, reviewing.Burst = max(reviewing.QPS, 500), max(reviewing.Burst, 1000)
		clients, err := kubernetes.NewForConfig(reviewing)
		if err != nil {
			return nil, fmt.Errorf("client of the cluster: %w", err)
		}
		g.proxies = proxyauth.New(proxyauth.Options{
			Reviews: clients.AuthenticationV1().TokenReviews(), Reader: controller.Reader(), Observe: controller.Observe,
			Decode: decode.Options{DefaultMesh: o.defaultMesh}, Clock: env.Clock, Logger: logger,
		})
	}
	return g, nil
}

// authenticator is nil where every proxy is what it says it is.
func (g *guard) authenticator() xds.Authenticator {
	if g.proxies == nil {
		return nil
	}
	return g.proxies
}

// run keeps all of it in eg.
func (g *guard) run(ctx context.Context, eg *errgroup.Group) {
	if g.identity != nil {
		eg.Go(func() error { return g.identity.Run(ctx) })
	}
	if g.proxies != nil {
		eg.Go(func() error { return g.proxies.Run(ctx) })
	}
}

// certified waits for the first certificate where there is to be one; false if ctx ends before.
func (g *guard) certified(ctx context.Context) bool {
	if g.identity == nil {
		return true
	}
	select {
	case <-g.identity.Ready():
		return true
	case <-ctx.Done():
		return false
	}
}

// xdsOptions are those of the server of proxies.
func (g *guard) xdsOptions() []grpc.ServerOption {
	if g.proxies == nil {
		return nil
	}
	return []grpc.ServerOption{grpc.Creds(credentials.NewTLS(g.identity.TLSConfig()))}
}

// webhookTLS is the configuration of the server of webhooks.
func (g *guard) webhookTLS(folder string) *tls.Config {
	if folder != "" {
		return certificateFolder(folder)
	}
	return g.identity.TLSConfig()
}

// bundle is what proxies trust the control plane by; nil where they need nothing.
func (g *guard) bundle() func() []byte {
	if g.proxies == nil {
		return nil
	}
	return g.identity.CABundle
}

// grace is how long a replica that could serve otherwise waits for the first read of the cluster before it calls itself ready without it.
const grace = 5 * time.Second

// waits says what is missing before this replica may be called ready; empty for nothing.
//
// Objects that are stored in the other API version can be read only once some replica converts them, and the API server asks only those that are ready: the
// first of them must be so before it has read anything. It answers conversions at once, and everything else when it has read (see whenRead).
func (g *guard) waits(synced bool) string {
	if g.identity == nil {
		return missing(synced)
	}
	if !g.passed.Load() {
		select {
		case <-g.identity.Ready():
		default:
			return "there is no serving certificate yet"
		}
		if list := g.identity.Pending(); len(list) > 0 {
			return "the API server is not told yet whom to trust: " + strings.Join(list, ", ")
		}
		g.passed.Store(true)
	}
	now := g.clock.Now()
	if synced || !g.identity.Converts() {
		return missing(synced)
	}
	g.told.CompareAndSwap(nil, &now)
	if now.Sub(*g.told.Load()) < grace {
		return unread
	}
	if !g.early.Swap(true) {
		g.logger.Warn("ready before the cluster is read: the API server may need this replica for that, to convert what is stored")
	}
	return ""
}

func missing(synced bool) string {
	if synced {
		return ""
	}
	return unread
}

// whenRead holds requests back until the cluster is read, but for conversions, which need nothing of it.
func whenRead(read <-chan struct{}, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != admission.ConvertPath {
			select {
			case <-read:
			case <-r.Context().Done():
				http.Error(w, unread, http.StatusServiceUnavailable)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}
