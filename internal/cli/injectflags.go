// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"cmp"
	"context"
	"log/slog"
	"sync"

	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"

	"github.com/tulle-mesh/tulle/internal/inject"
)

// injectorFlags are the flags of the pod webhook.
type injectorFlags struct {
	settings inject.Settings

	image, repository, tag string
}

// addInjectorFlags registers the flags of the pod webhook: those of the original that mean something here, with its defaults but for the images, and our own.
func addInjectorFlags(flags *pflag.FlagSet) *injectorFlags {
	f := &injectorFlags{settings: inject.Defaults()}
	s := &f.settings
	flags.StringVar(&f.repository, "sidecar-image-repository", inject.Repository, "repository of the proxy's image, which must hold tulle-agent")
	flags.StringVar(&f.tag, "sidecar-image-tag", inject.Tag(), "tag of the proxy's image")
	flags.StringVar(&f.image, "sidecar-image", "", "the proxy's image in one; wins over repository and tag")
	flags.StringVar(&s.InitImage, "init-image", s.InitImage, "image of the init container that redirects traffic, which must start tulle-agent; the proxy's when empty")
	flags.StringVar(&s.SidecarMode, "sidecar-mode", s.SidecarMode, "native (an init container that goes on), classic (a container), or auto: native where the API server is 1.29 or newer")
	flags.BoolVar(&s.CNI, "enable-cni", s.CNI, "leave the redirection of traffic to the CNI plugin, where a pod's annotation does not say otherwise")
	flags.StringVar(&s.XDSEndpoint, "xds-endpoint", "", "where proxies find the control plane, host:port; the Service appmesh-controller-xds when empty")
	flags.StringVar(&s.LogLevel, "sidecar-log-level", s.LogLevel, "Envoy's log level; a pod's sidecarEnv wins")
	flags.Uint16Var(&s.AdminPort, "envoy-admin-access-port", s.AdminPort, "port of Envoy's administration on loopback, and of statistics and readiness on the pod's address")
	flags.StringVar(&s.AdminAccessLog, "envoy-admin-access-log-file", s.AdminAccessLog, "file for the access log of Envoy's administration; empty for none")
	flags.BoolVar(&s.AdminIPv6, "envoy-admin-access-enable-ipv6", s.AdminIPv6, "told to the proxy; only App Mesh's own image listens otherwise then")
	flags.StringVar(&s.CPURequest, "sidecar-cpu-requests", s.CPURequest, "CPU that the proxy requests")
	flags.StringVar(&s.MemoryRequest, "sidecar-memory-requests", s.MemoryRequest, "memory that the proxy requests")
	flags.StringVar(&s.CPULimit, "sidecar-cpu-limits", s.CPULimit, "limit of the proxy's CPU; empty for none")
	flags.StringVar(&s.MemoryLimit, "sidecar-memory-limits", s.MemoryLimit, "limit of the proxy's memory; empty for none")
	flags.StringVar(&s.IgnoredIPs, "ignored-ips", s.IgnoredIPs, "addresses and networks, separated by commas, to which connections are not captured")
	flags.StringVar(&s.DrainWait, "prestop-delay", s.DrainWait, "how long a proxy that is to end waits, at most, for requests in flight: seconds, or a duration such as 1m")
	flags.BoolVar(&s.WaitUntilReady, "wait-until-proxy-ready", s.WaitUntilReady, "start a pod's containers once a classic proxy is ready; behind a native one they always do")
	flags.Int32Var(&s.ReadyTimeout, "poststart-timeout", s.ReadyTimeout, "seconds that a proxy may take to become ready before it is started again")
	flags.Int32Var(&s.ReadinessDelay, "readiness-probe-initial-delay", s.ReadinessDelay, "seconds before the proxy's first readiness probe")
	flags.Int32Var(&s.ReadinessPeriod, "readiness-probe-period", s.ReadinessPeriod, "seconds between the proxy's readiness probes")
	flags.BoolVar(&s.PullSecret, "enable-ecr-secret", s.PullSecret, "add the image pull secret appmesh-ecr-secret to pods")
	flags.BoolVar(&s.FSGroup, "enable-iam-for-service-accounts", s.FSGroup, "give pods without an fsGroup the proxy's group, so that it can read projected credentials")
	flags.BoolVar(&s.SDS, "enable-sds", s.SDS, "mount the socket of a secret discovery service for nodes whose certificates come from one")
	flags.StringVar(&s.SDSPath, "sds-uds-path", s.SDSPath, "path of that socket on the machine")
	flags.BoolVar(&s.Preview, "preview", s.Preview, "told to the proxy; only App Mesh's own image asks AWS otherwise then")
	flags.BoolVar(&s.DualStack, "dual-stack-endpoint", s.DualStack, "told to the proxy; only App Mesh's own image asks AWS otherwise then")
	flags.BoolVar(&s.FIPS, "fips-endpoint", s.FIPS, "told to the proxy; only App Mesh's own image asks AWS otherwise then")
	f.observers(flags)
	return f
}

// observers registers the flags of statistics and tracing.
func (f *injectorFlags) observers(flags *pflag.FlagSet) {
	s := &f.settings
	flags.BoolVar(&s.StatsTags, "enable-stats-tags", s.StatsTags, "tag every statistic with mesh and node")
	flags.BoolVar(&s.Statsd.Enabled, "enable-statsd", s.Statsd.Enabled, "send statistics to a DogStatsD server")
	flags.StringVar(&s.Statsd.Address, "statsd-address", s.Statsd.Address, "address of the DogStatsD server; ref:status.hostIP for the pod's machine")
	flags.Uint16Var(&s.Statsd.Port, "statsd-port", s.Statsd.Port, "UDP port of the DogStatsD server")
	flags.StringVar(&s.Statsd.SocketPath, "statsd-socket-path", s.Statsd.SocketPath, "unix socket of the DogStatsD server, in place of address and port")
	flags.BoolVar(&s.Datadog.Enabled, "enable-datadog-tracing", s.Datadog.Enabled, "tell proxies to trace to Datadog")
	flags.StringVar(&s.Datadog.Address, "datadog-address", s.Datadog.Address, "host of the Datadog agent; ref:status.hostIP for the pod's machine")
	flags.Uint16Var(&s.Datadog.Port, "datadog-port", s.Datadog.Port, "port of the Datadog agent")
	flags.BoolVar(&s.Jaeger.Enabled, "enable-jaeger-tracing", s.Jaeger.Enabled, "tell proxies to trace to Jaeger")
	flags.StringVar(&s.Jaeger.Address, "jaeger-address", s.Jaeger.Address, "host of the Jaeger collector; ref:status.hostIP for the pod's machine")
	flags.Uint16Var(&s.Jaeger.Port, "jaeger-port", s.Jaeger.Port, "port of the Jaeger collector")
	flags.BoolVar(&s.XRay.Enabled, "enable-xray-tracing", s.XRay.Enabled, "run the AWS X-Ray daemon beside proxies, and tell them to trace to it")
	flags.StringVar(&s.XRay.Image, "xray-image", s.XRay.Image, "image of the X-Ray daemon")
	flags.Uint16Var(&s.XRay.Port, "xray-daemon-port", s.XRay.Port, "UDP port of the X-Ray daemon")
	flags.StringVar(&s.XRay.LogLevel, "xray-log-level", s.XRay.LogLevel, "log level of the X-Ray daemon: dev, debug, info, prod, warn or error")
	flags.StringVar(&s.XRay.RoleARN, "xray-config-roleArn", s.XRay.RoleARN, "role that the X-Ray daemon assumes")
	flags.StringVar(&s.XRay.SamplingRate, "xray-sampling-rate", s.XRay.SamplingRate, "share of requests that are traced, 0 to 1")
}

// read brings the flags together, and checks them. namespace is the control plane's.
func (f *injectorFlags) read(namespace, region, account string) (inject.Settings, error) {
	s := f.settings
	s.Image = cmp.Or(f.image, f.repository+":"+f.tag)
	s.XDSEndpoint = cmp.Or(s.XDSEndpoint, "appmesh-controller-xds."+namespace+".svc:443")
	s.Region, s.AccountID = region, account
	if err := s.Validate(); err != nil {
		return s, usageError{err}
	}
	return s, nil
}

// reportInjector logs what the settings ask for and the proxy does not do yet.
func reportInjector(ctx context.Context, logger *slog.Logger, s inject.Settings) {
	if s.XRay.Enabled || s.Datadog.Enabled || s.Jaeger.Enabled {
		logger.WarnContext(ctx, "proxies are told of the tracer, and Tulle's own does not send traces yet")
	}
}

// serverVersion asks the API server for its version until it has said so once.
func serverVersion(client discovery.ServerVersionInterface) func(context.Context) (string, error) {
	var mu sync.Mutex
	known := ""
	return func(context.Context) (string, error) {
		mu.Lock()
		defer mu.Unlock()
		if known != "" {
			return known, nil
		}
		info, err := client.ServerVersion()
		if err == nil {
			known = info.GitVersion
		}
		return known, err
	}
}
