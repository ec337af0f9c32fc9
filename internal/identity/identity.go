// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package identity is the control plane's own certificate authority and the serving certificate that it signs: it keeps both in a Secret, renews them in
// time, and tells the API server whom to trust, in the webhooks and definitions that call the control plane. The command line runs one for each server;
// any number of replicas share a Secret. What it does with the API is in Rules, which a role must allow and nothing else.
package identity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/tulle-mesh/tulle/internal/clock"
)

// Options are what an Identity is made from. ForController and ForInjector fill in the names.
type Options struct {
	Config *rest.Config
	Clock  clock.Clock
	Logger *slog.Logger

	// Namespace is that of the Secret, its owner and the Service.
	Namespace string
	// Secret is where authority and certificate are kept.
	Secret string
	// Publish is the ConfigMap that the roots are published in; empty for none.
	Publish string
	// Owner is the Deployment that the Secret goes with; where it does not exist the Secret has none.
	Owner string
	// Await is how long, at most, the Deployment is waited for before anything is made that it shall own: a replica that starts when its Deployment is gone
	// already ends in that time, and leaves nothing behind. Zero outside a pod.
	Await time.Duration
	// Names are the DNS names of the serving certificate.
	Names []string

	// App is the value of the label app.kubernetes.io/name that a webhook configuration must have to be touched.
	App string
	// Service is the one that a webhook or a conversion must call to be told whom to trust; it is in Namespace.
	Service string
	// MutatingWebhooks and ValidatingWebhooks are the names of configurations.
	MutatingWebhooks, ValidatingWebhooks []string
	// Definitions are the names of CustomResourceDefinitions, whose conversion is also led to Namespace.
	Definitions []string
}

// Identity keeps a certificate. It is safe for concurrent use.
type Identity struct {
	opts    Options
	clients kubernetes.Interface
	targets []*target

	// held is the keyring in force, and owned says that the Deployment was seen. They are the keeping goroutine's alone.
	held  *keyring
	owned bool

	// serving and bundle are nil until ready is closed.
	serving atomic.Pointer[tls.Certificate]
	bundle  atomic.Pointer[[]byte]
	ready   chan struct{}
}

// New makes an identity that has no certificate until it runs.
func New(o Options) (*Identity, error) {
	clients, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	objects, err := dynamic.NewForConfig(o.Config)
	if err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	i := &Identity{opts: o, clients: clients, ready: make(chan struct{})}
	for _, group := range []struct {
		kind  targetKind
		names []string
	}{{mutatingWebhooks, o.MutatingWebhooks}, {validatingWebhooks, o.ValidatingWebhooks}, {definitions, o.Definitions}} {
		for _, name := range group.names {
			i.targets = append(i.targets, newTarget(i, objects, group.kind, name))
		}
	}
	return i, nil
}

// Run keeps the Secret, and the webhooks and definitions that trust it, until ctx ends, which is a good end. It waits for an API server that is away.
func (i *Identity) Run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { i.keep(ctx); return nil })
	for _, t := range i.targets {
		g.Go(func() error { t.run(ctx); return nil })
	}
	return g.Wait()
}

// Ready is closed once there is a certificate to serve with.
func (i *Identity) Ready() <-chan struct{} { return i.ready }

// Pending says what the API server does not trust yet: webhook configurations and definitions, by kind and name. One that does not exist is not in it.
func (i *Identity) Pending() []string {
	var list []string
	for _, t := range i.targets {
		if !t.settled.Load() {
			list = append(list, t.String())
		}
	}
	return list
}

// Converts says that the API server asks this control plane to convert objects: then it may not be able to read what is stored before a replica answers.
func (i *Identity) Converts() bool {
	return slices.ContainsFunc(i.targets, func(t *target) bool { return t.converts.Load() })
}

// errNotYet is what a client gets that comes before the first certificate.
var errNotYet = errors.New("the control plane has no certificate yet")

// TLSConfig is that of a server, TLS 1.3 alone. Each handshake gets the certificate of its time.
func (i *Identity) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if c := i.serving.Load(); c != nil {
				return c, nil
			}
			return nil, errNotYet
		},
	}
}

// CABundle is the PEM of the roots that clients shall trust; nil before Ready. Ask again for each use: it grows when the authority is about to change.
func (i *Identity) CABundle() []byte {
	if b := i.bundle.Load(); b != nil {
		return *b
	}
	return nil
}

// take puts a keyring in force.
func (i *Identity) take(k *keyring) {
	first := i.serving.Swap(k.certificate()) == nil
	bundle := k.bundle()
	before := i.bundle.Swap(&bundle)
	if first {
		close(i.ready)
	}
	if before == nil || string(*before) != string(bundle) {
		for _, t := range i.targets {
			t.look()
		}
	}
}

// retry is how long to wait before the API server is asked again.
const retry = time.Second
