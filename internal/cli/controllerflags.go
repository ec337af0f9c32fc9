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
	whyTLS     = "webhooks speak TLS 1.3 alone"
)

// addForeignFlags accepts the original's flags that no flag of ours replaces.
func addForeignFlags(flags *pflag.FlagSet) foreignFlags {
	f := foreignFlags{}
	for why, names := range map[string][]string{
		whyAWS: {
			"aws-api-throttle", "cloudmap-dns-ttl", "page-limit", "envoy-aws-access-key-id", "envoy-aws-secret-access-key", "envoy-aws-session-token",
			"xray-config-roleArn",
		},
		whyRuntime: {"sync-period", "poststart-interval"},
		whyTLS:     {"tls-cipher-suite", "tls-min-version"},
	} {
		for _, name := range names {
			if flags.Lookup(name) == nil {
				flags.String(name, "", "accepted, without effect: "+why)
				f[name] = why
			}
		}
	}
	for why, names := range map[string][]string{
		whyAWS:     {"use-aws-dual-stack-endpoint", "use-aws-fips-endpoint", "dual-stack-endpoint", "fips-endpoint", "preview", "enable-ecr-secret"},
		whyRuntime: {"enable-custom-health-check"},
		whyAlways:  {"enable-backend-groups"},
	} {
		for _, name := range names {
			if flags.Lookup(name) == nil {
				flags.Bool(name, false, "accepted, without effect: "+why)
				f[name] = why
			}
		}
	}
	for name := range f {
		_ = flags.MarkHidden(name) // the flag was made above
	}
	return f
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
		logger.InfoContext(ctx, "a flag of the original controller has no effect", "flag", "--"+name, "why", f[name])
	}
}
