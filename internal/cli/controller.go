// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/plane"
)

// controllerOptions are the flags of controller that have an effect.
type controllerOptions struct {
	kubeconfig, namespace, watchNamespace string
	deployment                            string
	leaderElection, placeholders          bool
	defaultMesh, clusterName              string
	mesh                                  mesh.Options
	xds, metrics, webhook, certificates   string
	health                                uint16
	log                                   *logging
	injector                              *injectorFlags
}

func newController(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "controller",
		Short: "Run the control plane from a Kubernetes cluster",
		Long: `Controller watches the mesh's custom resources and the workloads behind them, gives Envoy proxies their configuration over ADS,
writes status, and answers the API server's webhooks. Any number of replicas may run; one of them writes.

The flags of the original App Mesh controller are accepted. Those that only mean something to AWS are logged once and do nothing.`,
		Example: `  # In the cluster, as the chart does
  tulle controller --enable-leader-election

  # On this machine, with the cluster of a kubeconfig, without webhooks, for proxies on this machine
  tulle controller --kubeconfig ~/.kube/config --xds-addr 127.0.0.1:15010 --webhook-addr "" --metrics-addr 127.0.0.1:8080`,
	}
	o := controllerOptions{log: addLogging(c)}
	flags := c.Flags()
	flags.StringVar(&o.kubeconfig, "kubeconfig", "", "file that says how to reach the cluster; empty for the cluster that the program runs in, else $KUBECONFIG")
	flags.StringVar(&o.namespace, "namespace", "", "the controller's own namespace; $POD_NAMESPACE, else appmesh-system, when empty")
	flags.StringVar(&o.deployment, "deployment", controllerName, "the controller's own Deployment, which its Secret, ConfigMap and Lease go with")
	flags.StringVar(&o.watchNamespace, "watch-namespace", "", "the one namespace whose objects are seen; all when empty")
	flags.BoolVar(&o.leaderElection, "enable-leader-election", false, "agree with other replicas on the one that writes status; needed with more than one")
	flags.StringVar(&o.defaultMesh, "default-mesh", "", "mesh of v1beta1 objects that name none, as the old injector's mesh.name")
	flags.BoolVar(&o.placeholders, "placeholder-services", false,
		"make a Service without a selector for each virtual service named name.namespace that has none; a Mesh's annotation "+kube.PlaceholderAnnotation+" (enabled, disabled) wins")
	flags.StringVar(&o.clusterName, "cluster-name", "", "name of this cluster, noted in the log alone: it is no part of any other name")
	flags.StringVar(&o.mesh.ClusterDomain, "cluster-domain", "cluster.local", "DNS domain of the cluster's Services")
	flags.StringVar(&o.mesh.Region, "aws-region", "us-west-2", "region in ARNs, which are names alone")
	flags.StringVar(&o.mesh.AccountID, "aws-account-id", "000000000000", "account in ARNs, 12 digits")
	flags.StringVar(&o.xds, "xds-addr", ":15010",
		"where proxies connect: host:port, over TLS and with the token of their pod; on loopback and unix:///path in plaintext, and without proof")
	flags.StringVar(&o.metrics, "metrics-addr", "0.0.0.0:8080", "where metrics and debug pages are served: host:port; empty for nowhere")
	flags.StringVar(&o.webhook, "webhook-addr", ":9443", "where the API server's webhooks are served over TLS: host:port; empty for nowhere")
	flags.StringVar(&o.certificates, "webhook-cert-dir", "",
		"folder of tls.crt and tls.key for the webhooks, read again when they change, as cert-manager keeps it; the controller's own, which it tells the API server to trust, when empty")
	flags.Uint16Var(&o.health, "health-probe-port", 61779, "port of /healthz and /readyz")
	o.injector = addInjectorFlags(flags)
	foreign := addForeignFlags(flags)
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		ctx, stop := untilSignal(cmd.Context())
		defer stop()
		return control(ctx, env, o, foreign.set(flags))
	}
	return c
}

// clusterConfig reads a kubeconfig, or takes the cluster that the program runs in.
func clusterConfig(path string) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = path
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, usagef("there is no cluster to watch: run in a pod, or give --kubeconfig or $KUBECONFIG")
	}
	if err != nil {
		return nil, usagef("--kubeconfig: %w", err)
	}
	config.UserAgent = "tulle-controller"
	if config.QPS == 0 {
		config.QPS, config.Burst = 50, 200 // one write an object in five seconds is all that is ever done; this bounds the first of them
	}
	return config, nil
}

// control runs until ctx ends, which is a good end.
func control(ctx context.Context, env Env, o controllerOptions, foreign foreignFlags) error {
	logger, err := o.log.logger(env)
	if err != nil {
		return err
	}
	foreign.report(ctx, logger)
	if o.injector.settings, err = o.injector.read(ownNamespace(env, o), o.mesh.Region, o.mesh.AccountID); err != nil {
		return err
	}
	reportInjector(ctx, logger, o.injector.settings)
	config, err := clusterConfig(o.kubeconfig)
	if err != nil {
		return err
	}
	kube.LogTo(logger)
	var cp *controlPlane // made below, from what reads the cluster, which only then runs
	peers := newPeers(o, env, logger)
	controller, err := kube.New(kube.Options{
		Config: config, Namespace: ownNamespace(env, o), Identity: ownName(env), WatchNamespace: o.watchNamespace,
		LeaderElection: o.leaderElection, Deployment: o.deployment,
		Decode: decode.Options{DefaultMesh: o.defaultMesh}, Mesh: o.mesh, Clock: env.Clock, Logger: logger,
		Apply: func(ctx context.Context, changes mesh.Changes) { cp.apply(ctx, changes) }, Placeholders: o.placeholders, Snapshot: func() mesh.Reader { return cp.store.Snapshot() },
		Check: func() []mesh.Finding { return plane.Check(cp.store.Snapshot()) },
		Refusals: func(ctx context.Context) []mesh.Finding {
			return append(cp.plane.Refusals(cp.xds.Proxies()), peers.refusals(ctx)...)
		},
	})
	if err != nil {
		return err
	}
	peers.reader = controller.Reader()
	guard, err := o.guard(env, config, controller, logger)
	if err != nil {
		return err
	}
	cp = newControlPlane(env, o.mesh, guard.authenticator(), logger)
	cp.waits = func() string { return guard.waits(cp.isSynced()) }
	g, ctx := errgroup.WithContext(ctx)
	if err := o.listen(ctx, g, cp, guard, whenRead(cp.synced, o.webhooks(env, controller, o.injector.settings, guard.bundle(), logger))); err != nil {
		return err
	}
	guard.run(ctx, g)
	g.Go(func() error { cp.plane.Run(ctx); return nil })
	g.Go(func() error { return controller.Run(ctx) })
	logger.Info("controlling", "xds", o.xds, "metrics", o.metrics, "webhooks", o.webhook, "cluster", o.clusterName)
	return g.Wait()
}

// listen opens every address and serves there in g.
func (o controllerOptions) listen(ctx context.Context, g *errgroup.Group, cp *controlPlane, guard *guard, webhooks http.Handler) error {
	xdsListener, err := listen(ctx, "xds-addr", o.xds, false)
	if err != nil {
		return err
	}
	g.Go(func() error {
		// As in serve: proxies that come before the cluster was read wait for it.
		select {
		case <-cp.synced:
		case <-ctx.Done():
		}
		if !guard.certified(ctx) || ctx.Err() != nil {
			return xdsListener.Close()
		}
		return cp.serveXDS(ctx, func(s *grpc.Server) error { return s.Serve(xdsListener) }, guard.xdsOptions()...)
	})
	if err := servePages(ctx, g, controllerPages(cp), o.metrics, o.health); err != nil {
		return errors.Join(err, xdsListener.Close())
	}
	if o.webhook == "" {
		return nil
	}
	l, err := listen(ctx, "webhook-addr", o.webhook, false)
	if err != nil {
		return errors.Join(err, xdsListener.Close())
	}
	server := webhookServer(webhooks, guard.webhookTLS(o.certificates), cp.logger)
	g.Go(func() error {
		if o.certificates == "" && !guard.certified(ctx) {
			return l.Close()
		}
		return serveHTTP(ctx, server, func(s *http.Server) error { return s.ServeTLS(l, "", "") })
	})
	return nil
}

// namespaceFile is where a pod finds the name of its namespace.
const namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// systemNamespace is the chart's.
const systemNamespace = "appmesh-system"

func ownNamespace(env Env, o controllerOptions) string {
	if o.namespace != "" {
		return o.namespace
	}
	if name := env.Getenv("POD_NAMESPACE"); name != "" {
		return name
	}
	if text, err := os.ReadFile(namespaceFile); err == nil {
		return strings.TrimSpace(string(text))
	}
	return systemNamespace
}

// awaited is how long a control plane that runs in a pod waits for its Deployment; one that runs elsewhere has none.
func awaited(env Env) time.Duration {
	if env.Getenv("POD_NAME") == "" {
		return 0
	}
	return 10 * time.Second
}

// ownName is the pod's, which is the host's in a pod.
func ownName(env Env) string {
	if name := env.Getenv("POD_NAME"); name != "" {
		return name
	}
	if name, err := os.Hostname(); err == nil {
		return name
	}
	return "tulle"
}
