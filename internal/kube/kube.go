// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package kube is the input from a Kubernetes cluster, and the one writer of the status of custom resources: it watches what the mesh is made of, feeds the
// decoder, and has the leader among the replicas report what became of each object. The command line wires it; nothing else may call it.
// What it does with the API is in Rules, which a role must allow and nothing else.
package kube

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Options are what a Controller is made from.
type Options struct {
	Config *rest.Config
	// Namespace is the controller's own, and Identity this replica's name in the election, unique among them.
	Namespace, Identity string
	// WatchNamespace limits the namespaced objects that are seen to one namespace; empty is all.
	WatchNamespace string
	// LeaderElection makes replicas agree on the one that writes; without it this one does.
	LeaderElection bool
	// Deployment is the controller's own, which the Lease of the election goes with; empty for none.
	Deployment string
	Decode     decode.Options
	Mesh       mesh.Options
	Clock      clock.Clock
	Logger     *slog.Logger

	// Apply is given each step of the model, in order, from one goroutine. The first is the cluster's whole state.
	Apply func(context.Context, mesh.Changes)
	// Check says what is wrong in the model beyond decoding. It may take long; it is called after changes, by the leader.
	Check func() []mesh.Finding
	// Placeholders makes placeholder Services for all meshes but those whose annotation says otherwise.
	Placeholders bool
	// Snapshot gives the model as it is; placeholder Services are made from it, and without it there are none.
	Snapshot func() mesh.Reader
	// Refusals says what connected proxies refuse, wherever they are connected. The leader calls it every few seconds.
	Refusals func(context.Context) []mesh.Finding
}

// Controller is one replica's side of the cluster.
type Controller struct {
	opts     Options
	client   client.Client
	cache    cache.Cache
	clients  kubernetes.Interface
	reporter *reporter
	// placeholders works on the leader, beside the reporter.
	placeholders *placeholders
}

// Scheme holds the types that this package reads and writes.
func Scheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, discoveryv1.AddToScheme, appsv1.AddToScheme, v1beta2.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	return scheme, nil
}

// New makes a controller that has not started. It asks the API server which kinds there are.
func New(o Options) (*Controller, error) {
	scheme, err := Scheme()
	if err != nil {
		return nil, err
	}
	c := &Controller{opts: o}
	cacheOptions := cache.Options{
		Scheme: scheme, DefaultTransform: slim, ReaderFailOnMissingInformer: true,
	}
	if o.WatchNamespace != "" {
		cacheOptions.DefaultNamespaces = map[string]cache.Config{o.WatchNamespace: {}}
	}
	if c.cache, err = cache.New(o.Config, cacheOptions); err != nil {
		return nil, fmt.Errorf("cache of the cluster: %w", err)
	}
	if c.client, err = client.New(o.Config, client.Options{Scheme: scheme}); err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	if c.clients, err = kubernetes.NewForConfig(o.Config); err != nil {
		return nil, fmt.Errorf("client of the cluster: %w", err)
	}
	c.reporter = newReporter(o, c.client, c.clients.CoreV1().Events(""))
	c.placeholders = newPlaceholders(o, c.client, c.cache)
	return c, nil
}

// Reader reads from the cache that Run keeps: the seven kinds, Namespaces, Pods (their identity, labels, addresses and mesh variables), Services,
// EndpointSlices, and the metadata of Deployments. Before Run has synced, it gives an error.
func (c *Controller) Reader() client.Reader { return c.cache }

// Clientset is the typed client that the controller uses.
func (c *Controller) Clientset() kubernetes.Interface { return c.clients }

// watched are the kinds that mean something to the mesh.
func watched() []client.Object {
	deployment := &metav1.PartialObjectMetadata{}
	deployment.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("Deployment"))
	return append(CustomResources(),
		&corev1.Namespace{}, &corev1.Service{}, &discoveryv1.EndpointSlice{}, &corev1.Pod{}, deployment)
}

// CustomResources are empty objects of the mesh's own kinds.
func CustomResources() []client.Object {
	return []client.Object{
		&v1beta2.Mesh{}, &v1beta2.VirtualNode{}, &v1beta2.VirtualService{}, &v1beta2.VirtualRouter{},
		&v1beta2.VirtualGateway{}, &v1beta2.GatewayRoute{}, &v1beta2.BackendGroup{},
	}
}

// retry is how long to wait before the cluster is asked again for something that it did not have.
const retry = 5 * time.Second
