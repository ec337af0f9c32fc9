// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/clock"
)

// Observer reads what says which pods have which proxy, for a program that is not the controller: Meshes, VirtualNodes, VirtualGateways and Namespaces.
// It writes nothing.
type Observer struct {
	cache   cache.Cache
	client  client.Client
	clients kubernetes.Interface
	watcher Controller
}

// NewObserver makes an observer that has not started.
func NewObserver(config *rest.Config, clock clock.Clock, logger *slog.Logger) (*Observer, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	v := &Observer{}
	if v.cache, err = cache.New(config, cache.Options{Scheme: scheme, DefaultTransform: slim, ReaderFailOnMissingInformer: true}); err != nil {
		return nil, fmt.Errorf("cache of the cluster: %w", err)
	}
	if v.client, err = client.New(config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	if v.clients, err = kubernetes.NewForConfig(config); err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	v.watcher = Controller{opts: Options{Clock: clock, Logger: logger}, cache: v.cache}
	return v, nil
}

// Reader reads from the cache that Run keeps. Before Run has synced, it gives an error.
func (v *Observer) Reader() client.Reader { return v.cache }

// Live reads from the API server itself.
func (v *Observer) Live() client.Reader { return v.client }

// Clientset is the typed client of the same cluster.
func (v *Observer) Clientset() kubernetes.Interface { return v.clients }

// Run keeps the cache until ctx ends, which is a good end, and calls synced once it holds everything that there is. Where a kind is missing it waits for it.
func (v *Observer) Run(ctx context.Context, synced func()) error {
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error { return v.cache.Start(ctx) })
	g.Go(func() error {
		for _, object := range []client.Object{&corev1.Namespace{}, &v1beta2.Mesh{}, &v1beta2.VirtualNode{}, &v1beta2.VirtualGateway{}} {
			if _, err := v.watcher.informer(ctx, object); err != nil {
				return ended(ctx, err)
			}
		}
		if v.cache.WaitForCacheSync(ctx) {
			synced()
		}
		return nil
	})
	return g.Wait()
}
