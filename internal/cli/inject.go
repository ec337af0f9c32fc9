// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"

	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/identity"
	"github.com/tulle-mesh/tulle/internal/inject"
	"github.com/tulle-mesh/tulle/internal/kube"
)

// injectOptions are the flags of inject that have an effect.
type injectOptions struct {
	kubeconfig, namespace, controllerNamespace string
	mesh, clusterDomain, region, account       string
	deployment                                 string
	webhook, metrics                           string
	health                                     uint16
	injector                                   *injectorFlags
	log                                        *logging
}

func newInject(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "inject",
		Short: "Run the pod webhook alone, as the chart appmesh-inject does",
		Long: `Inject answers the API server's webhook of pods, as the controller does, and nothing else: it puts the proxy into the pods of namespaces with the label
appmesh.k8s.aws/sidecarInjectorWebhook=enabled. It is for those who install the chart appmesh-inject as they always did; the controller needs no help.

Where both run, whoever comes second finds the proxy and changes nothing. The flags of the old injector are accepted; those without meaning are logged once.`,
		Example: `  # In the cluster, as the chart does
  tulle inject --mesh-name dj-app`,
	}
	o := injectOptions{log: addLogging(c)}
	flags := c.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file that says how to reach the cluster; empty for the cluster that the program runs in, else $KUBECONFIG")
	flags.StringVar(&o.namespace, "namespace", "", "the injector's own namespace; $POD_NAMESPACE, else appmesh-system, when empty")
	flags.StringVar(&o.deployment, "deployment", "appmesh-inject", "the injector's own Deployment, which its Secret goes with")
	flags.StringVar(&o.controllerNamespace, "controller-namespace", "", "namespace of the controller, whose published roots proxies trust; the injector's own when empty")
	flags.StringVar(&o.mesh, "mesh-name", "", "mesh of v1beta1 nodes that name none; $APPMESH_NAME when empty. The controller wants the same as --default-mesh")
	flags.StringVar(&o.clusterDomain, "cluster-domain", "cluster.local", "DNS domain of the cluster's Services")
	flags.StringVar(&o.region, "aws-region", "", "region that proxies are told, which is a name alone; $APPMESH_REGION, else us-west-2, when empty")
	flags.StringVar(&o.account, "aws-account-id", "000000000000", "account of this side, 12 digits; the owner of a mesh of another one is part of a proxy's name")
	flags.StringVar(&o.webhook, "webhook-addr", ":9443", "where the API server's webhook is served over TLS: host:port")
	flags.StringVar(&o.metrics, "metrics-addr", "0.0.0.0:8080", "where metrics are served: host:port; empty for nowhere")
	flags.Uint16Var(&o.health, "health-probe-port", 61779, "port of /healthz and /readyz")
	o.injector = addInjectorFlags(flags)
	foreign := o.addOldFlags(flags)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		o.mesh = cmp.Or(o.mesh, env.Getenv("APPMESH_NAME"))
		o.region = cmp.Or(o.region, env.Getenv("APPMESH_REGION"), "us-west-2")
		return o.run(ctx, env, foreign.set(flags))
	}
	return c
}

// addOldFlags accepts the flags of the old injector by their own names.
func (o *injectOptions) addOldFlags(flags *pflag.FlagSet) foreignFlags {
	flags.StringVar(&o.region, "region", "", "as --aws-region")
	flags.BoolVar(&o.injector.settings.PullSecret, "ecr-secret", false, "as --enable-ecr-secret")
	flags.BoolVar(&o.injector.settings.XRay.Enabled, "inject-xray-sidecar", false, "as --enable-xray-tracing")
	f := foreignFlags{
		"master": "a kubeconfig names the API server", "port": "--webhook-addr says where",
		"tlscert": "the injector makes its own certificate", "tlskey": "the injector makes its own certificate", "enable-tls": whyAlways,
		"inject-statsd-exporter-sidecar": whyRuntime, "inject-default": "a namespace's label decides",
		"poststart-interval": whyRuntime, "tls-cipher-suite": whyTLS, "tls-min-version": whyTLS,
	}
	for name, why := range f {
		flags.String(name, "", "accepted, without effect: "+why)
		flags.Lookup(name).NoOptDefVal = "true"
	}
	for _, name := range []string{"region", "ecr-secret", "inject-xray-sidecar"} {
		_ = flags.MarkHidden(name) // the flag was made above
	}
	for name := range f {
		_ = flags.MarkHidden(name) // as above
	}
	return f
}

// run serves until ctx ends, which is a good end.
func (o injectOptions) run(ctx context.Context, env Env, foreign foreignFlags) error {
	logger, err := o.log.logger(env)
	if err != nil {
		return err
	}
	foreign.report(ctx, logger)
	namespace := ownNamespace(env, controllerOptions{namespace: o.namespace})
	trusted := cmp.Or(o.controllerNamespace, namespace)
	settings, err := o.injector.read(trusted, o.region, o.account)
	if err != nil {
		return err
	}
	reportInjector(ctx, logger, settings)
	config, err := clusterConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	config.UserAgent = "tulle-inject"
	kube.LogTo(logger)
	cluster, err := kube.NewObserver(config, env.Clock, logger)
	if err != nil {
		return err
	}
	own := identity.ForInjector(namespace, o.clusterDomain)
	own.Config, own.Clock, own.Logger, own.Owner = config, env.Clock, logger, o.deployment
	own.Await = awaited(env)
	certificates, err := identity.New(own)
	if err != nil {
		return err
	}
	roots := identity.NewRoots(cluster.Clientset(), trusted, env.Clock, logger)
	handler := inject.Handler(inject.Options{
		Cached: cluster.Reader(), Live: cluster.Live(), Decode: decode.Options{DefaultMesh: o.mesh}, Settings: settings, CABundle: roots.PEM,
		ServerVersion: serverVersion(cluster.Clientset().Discovery()), Logger: logger, Clock: env.Clock,
	})
	g, ctx := errgroup.WithContext(ctx)
	synced := &atomic.Bool{}
	g.Go(func() error { return cluster.Run(ctx, func() { synced.Store(true) }) })
	g.Go(func() error { return certificates.Run(ctx) })
	g.Go(func() error { roots.Run(ctx); return nil })
	if err := o.listen(ctx, g, handler, certificates, synced, logger); err != nil {
		return err
	}
	logger.Info("injecting", "webhook", o.webhook, "metrics", o.metrics, "mesh", o.mesh, "image", settings.Image, "sidecar", settings.SidecarMode)
	return g.Wait()
}

// listen opens every address and serves there in g.
func (o injectOptions) listen(ctx context.Context, g *errgroup.Group, webhook http.Handler, certificates *identity.Identity, synced *atomic.Bool, logger *slog.Logger) error {
	if err := servePages(ctx, g, injectPages(synced, certificates), o.metrics, o.health); err != nil {
		return err
	}
	l, err := listen(ctx, "webhook-addr", o.webhook, false)
	if err != nil {
		return err
	}
	server := webhookServer(webhook, certificates.TLSConfig(), logger)
	g.Go(func() error {
		return serveHTTP(ctx, server, func(s *http.Server) error { return s.ServeTLS(l, "", "") })
	})
	return nil
}

// injectPages are /healthz, /readyz and /metrics.
func injectPages(synced *atomic.Bool, certificates *identity.Identity) http.Handler {
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { text(w, http.StatusOK, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		pending := certificates.Pending()
		switch {
		case !synced.Load():
			text(w, http.StatusServiceUnavailable, "the first read of the cluster has not ended")
		case certificates.CABundle() == nil:
			text(w, http.StatusServiceUnavailable, "there is no certificate yet")
		case len(pending) > 0:
			text(w, http.StatusServiceUnavailable, fmt.Sprintf("the API server is not told yet whom to trust, in %v", pending))
		default:
			text(w, http.StatusOK, "ok")
		}
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{Registry: registry}))
	return mux
}
