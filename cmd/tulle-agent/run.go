// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tulle-mesh/tulle/internal/agent"
)

func newRunCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:   "run [-- ENVOY-ARGUMENT...]",
		Short: "Start Envoy and stay beside it until it has ended",
		Long: `run starts Envoy with a bootstrap of its own making, relays its configuration
from the control plane, and starts it again should it end by itself.

On SIGTERM or SIGINT it drains: it fails Envoy's health check, asks clients to
go, waits until nothing is in flight, and ends Envoy. A second signal ends
Envoy at once.`,
		Example: `  tulle-agent run --node mesh/howto/virtualNode/color --xds unix:///run/tulle/xds.sock
  APPMESH_RESOURCE_ARN=mesh/howto/virtualNode/color APPMESH_XDS_ENDPOINT=127.0.0.1:18000 tulle-agent run -- --component-log-level upstream:debug`,
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := s.read(cmd.Flags())
			if err != nil {
				return err
			}
			config.EnvoyArgs = args
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			if names := withoutEffect(); len(names) > 0 {
				log.Warn("variables of App Mesh's Envoy image that are set have no effect here", "names", names)
			}
			ctx, stop, done := onSignals(cmd.Context(), log)
			defer done()
			return agent.Run(ctx, stop, config, agent.Streams{Out: os.Stdout, Err: os.Stderr, Log: log})
		},
	}
	s.register(cmd.Flags())
	return cmd
}

// onSignals closes stop at the first signal to end, and ends the context at the second.
func onSignals(parent context.Context, log *slog.Logger) (ctx context.Context, stop <-chan struct{}, done func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	first := make(chan struct{})
	go func() {
		select {
		case <-signals:
			close(first)
		case <-ctx.Done():
			return
		}
		select {
		case s := <-signals:
			log.Warn("second signal: ending Envoy at once", "signal", s.String())
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, first, func() {
		signal.Stop(signals)
		cancel()
	}
}

func newBootstrapCommand() *cobra.Command {
	var s settings
	cmd := &cobra.Command{
		Use:     "bootstrap",
		Short:   "Print the bootstrap that run would start Envoy with",
		Example: "  tulle-agent bootstrap --node mesh/howto/virtualNode/color --xds unix:///run/tulle/xds.sock",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := s.read(cmd.Flags())
			if err != nil {
				return err
			}
			text, err := agent.Bootstrap(cmd.Context(), config)
			if err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(text)
			return err
		},
	}
	s.register(cmd.Flags())
	return cmd
}

func newReadyCommand() *cobra.Command {
	var address string
	var wait time.Duration
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Exit 0 if Envoy serves with its first configuration, 1 if not",
		Example: `  tulle-agent ready
  tulle-agent ready --wait 30s`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readEnvironment(cmd.Flags()); err != nil {
				return err
			}
			return agent.Ready(cmd.Context(), address, wait)
		},
	}
	registerStatus(cmd.Flags(), &address)
	cmd.Flags().Var(secondsValue{&wait}, "wait", "how long to ask again while it is not")
	return cmd
}

func newDrainCommand() *cobra.Command {
	var address string
	cmd := &cobra.Command{
		Use:   "drain",
		Short: "Make Envoy's clients go, and return when nothing is in flight (a container's preStop)",
		Long: `drain fails Envoy's health check, asks clients to go, and returns when nothing is
in flight or the agent's --drain-wait is over. Envoy still serves afterwards, for
the workload may yet have calls to make; SIGTERM to the agent then ends it with
no further wait.`,
		Example: "  tulle-agent drain",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := readEnvironment(cmd.Flags()); err != nil {
				return err
			}
			return agent.DrainNow(cmd.Context(), address)
		},
	}
	registerStatus(cmd.Flags(), &address)
	return cmd
}
