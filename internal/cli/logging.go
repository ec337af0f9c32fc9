// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"log/slog"

	"github.com/spf13/cobra"
)

// logging is the flags that say how a command logs.
type logging struct {
	level  string
	format string
}

func addLogging(c *cobra.Command) *logging {
	l := &logging{}
	c.Flags().StringVar(&l.level, "log-level", "info", "debug, info, warn or error")
	c.Flags().StringVar(&l.format, "log-format", "text", "text or json")
	mustComplete(c, "log-level", []string{"debug", "info", "warn", "error"})
	mustComplete(c, "log-format", []string{"text", "json"})
	return l
}

// logger writes to stderr.
func (l *logging) logger(env Env) (*slog.Logger, error) {
	var level slog.Level
	if err := level.UnmarshalText([]byte(l.level)); err != nil {
		return nil, usagef("--log-level %s: want debug, info, warn or error", l.level)
	}
	opts := &slog.HandlerOptions{Level: level}
	switch l.format {
	case "text":
		return slog.New(slog.NewTextHandler(env.Stderr, opts)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(env.Stderr, opts)), nil
	default:
		return nil, usagef("--log-format %s: want text or json", l.format)
	}
}
