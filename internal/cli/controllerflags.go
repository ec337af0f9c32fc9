// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"log/slog"
	"maps"
	"slices"

	"github.com/spf13/pflag"
)

// foreignFlags are flags of the original controller that are accepted and do nothing here.
type foreignFlags map[string]string

// The reasons for which a flag of the original does nothing.
const (
	whyAWS     = "nothing is asked of AWS"
	whyRuntime = "what it tunes does not exist here"
	whyAlways  = "it is always on"
	whyInject  = "the pod webhook does not read it"
)

// addForeignFlags accepts the original's flags that no flag of ours replaces.
func addForeignFlags(flags *pflag.FlagSet) foreignFlags {
	f := foreignFlags{}
	for why, names := range map[string][]string{
		whyAWS: {
			"aws-api-throttle", "cloudmap-dns-ttl", "page-limit", "envoy-aws-access-key-id", "envoy-aws-secret-access-key", "envoy-aws-session-token",
			"xray-config-roleArn",
		},
		whyRuntime: {"sync-period"},
	} {
		for _, name := range names {
			flags.String(name, "", "accepted, without effect: "+why)
			f[name] = why
		}
	}
	for why, names := range map[string][]string{
		whyAWS:     {"use-aws-dual-stack-endpoint", "use-aws-fips-endpoint", "dual-stack-endpoint", "fips-endpoint", "preview", "enable-ecr-secret"},
		whyRuntime: {"enable-custom-health-check"},
		whyAlways:  {"enable-backend-groups"},
	} {
		for _, name := range names {
			flags.Bool(name, false, "accepted, without effect: "+why)
			f[name] = why
		}
	}
	for _, name := range injectorFlags() {
		if flags.Lookup(name) != nil {
			continue // the pod webhook has taken it up
		}
		flags.String(name, "", "accepted, without effect: "+whyInject)
		flags.Lookup(name).NoOptDefVal = "true"
		f[name] = whyInject
	}
	for name := range f {
		_ = flags.MarkHidden(name) // the flag was made above
	}
	return f
}

// injectorFlags are those of the original's injector, which the pod webhook registers first as far as it has them.
func injectorFlags() []string {
	return []string{
		"datadog-address", "datadog-port", "enable-datadog-tracing", "enable-jaeger-tracing", "enable-xray-tracing", "enable-iam-for-service-accounts",
		"enable-sds", "sds-uds-path", "enable-stats-tags", "enable-statsd", "statsd-address", "statsd-port", "statsd-socket-path",
		"envoy-admin-access-enable-ipv6", "envoy-admin-access-log-file", "envoy-admin-access-port", "ignored-ips", "init-image",
		"jaeger-address", "jaeger-port", "poststart-interval", "poststart-timeout", "prestop-delay",
		"readiness-probe-initial-delay", "readiness-probe-period", "sidecar-cpu-requests", "sidecar-memory-requests", "sidecar-cpu-limits",
		"sidecar-memory-limits", "sidecar-image-repository", "sidecar-image-tag", "sidecar-log-level", "tls-cipher-suite", "tls-min-version",
		"wait-until-proxy-ready", "xray-daemon-port", "xray-image", "xray-log-level", "xray-sampling-rate",
	}
}

// set are those flags that were given.
func (f foreignFlags) set(flags *pflag.FlagSet) foreignFlags {
	given := foreignFlags{}
	flags.Visit(func(flag *pflag.Flag) {
		if why, foreign := f[flag.Name]; foreign {
			given[flag.Name] = why
		}
	})
	return given
}

// report logs once what was set for nothing.
func (f foreignFlags) report(ctx context.Context, logger *slog.Logger) {
	for _, name := range slices.Sorted(maps.Keys(f)) {
		level := slog.LevelInfo
		if f[name] == whyInject {
			level = slog.LevelWarn
		}
		logger.Log(ctx, level, "a flag of the original controller has no effect", "flag", "--"+name, "why", f[name])
	}
}
