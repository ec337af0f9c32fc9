// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tulle-mesh/tulle/internal/agent/redirect"
)

// redirectSettings are the flags of redirect before they are read together.
type redirectSettings struct {
	enabled, undo, dryRun, ipv6        bool
	user, group                        string
	ingressPort, egressPort            uint16
	appPorts, ignoredPorts, ignoredIPs string
}

func newRedirectCommand() *cobra.Command {
	var s redirectSettings
	cmd := &cobra.Command{
		Use:   "redirect",
		Short: "Bring the workload's TCP connections to Envoy, with iptables",
		Long: `redirect programs the rules that bring TCP connections of this network namespace
to Envoy: inbound ones to the application's ports, and outbound ones but for those
of Envoy's own user and to ignored ports and addresses. Loopback is never touched.
It may be run again at any time: the rules are replaced in one step.`,
		Example: `  tulle-agent redirect --app-ports 8080,9090
  tulle-agent redirect --app-ports 8080 --dry-run
  tulle-agent redirect --undo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := s.read(cmd.Flags())
			if err != nil {
				return err
			}
			log := slog.New(slog.NewTextHandler(os.Stderr, nil))
			switch {
			case s.dryRun:
				return redirect.Print(cmd.OutOrStdout(), config, s.undo)
			case s.undo:
				return redirect.Undo(cmd.Context(), config)
			case !s.enabled:
				log.Warn("nothing is captured, since APPMESH_START_ENABLED is 0")
				return nil
			default:
				return redirect.Apply(cmd.Context(), config, log)
			}
		},
	}
	s.register(cmd.Flags())
	return cmd
}

func (s *redirectSettings) register(flags *pflag.FlagSet) {
	flags.BoolVar(&s.enabled, "enabled", true, "program the rules; false does nothing")
	fromEnvironment(flags, "enabled", "APPMESH_START_ENABLED")
	flags.BoolVar(&s.undo, "undo", false, "take the rules out")
	flags.BoolVar(&s.dryRun, "dry-run", false, "print the commands instead of running them")
	flags.BoolVar(&s.ipv6, "ipv6", true, "capture IPv6 too")
	fromEnvironment(flags, "ipv6", "APPMESH_ENABLE_IPV6")
	flags.StringVar(&s.user, "ignore-uid", strconv.Itoa(envoyUser), "number of the user whose connections are left alone: Envoy's")
	fromEnvironment(flags, "ignore-uid", "APPMESH_IGNORE_UID")
	flags.StringVar(&s.group, "ignore-gid", "", "number of the group whose connections are left alone")
	fromEnvironment(flags, "ignore-gid", "APPMESH_IGNORE_GID")
	s.ingressPort, s.egressPort = 15000, 15001
	flags.Var(portValue{&s.ingressPort}, "ingress-port", "Envoy's port for inbound connections")
	fromEnvironment(flags, "ingress-port", "APPMESH_ENVOY_INGRESS_PORT")
	flags.Var(portValue{&s.egressPort}, "egress-port", "Envoy's port for outbound connections")
	fromEnvironment(flags, "egress-port", "APPMESH_ENVOY_EGRESS_PORT")
	flags.StringVar(&s.appPorts, "app-ports", "", "the application's ports whose inbound connections are captured, separated by commas")
	fromEnvironment(flags, "app-ports", "APPMESH_APP_PORTS")
	flags.StringVar(&s.ignoredIPs, "egress-ignored-ips", "169.254.169.254,169.254.170.2", "addresses and networks to which connections are left alone")
	fromEnvironment(flags, "egress-ignored-ips", "APPMESH_EGRESS_IGNORED_IP")
	flags.StringVar(&s.ignoredPorts, "egress-ignored-ports", "", "ports to which connections are left alone; 22 always is")
	fromEnvironment(flags, "egress-ignored-ports", "APPMESH_EGRESS_IGNORED_PORTS")
}

// read brings flags and environment together. All faults are gathered.
func (s *redirectSettings) read(flags *pflag.FlagSet) (redirect.Config, error) {
	faults := []error{readEnvironment(flags)}
	fault := func(name string, err error) {
		if err != nil {
			faults = append(faults, fmt.Errorf("--%s: %w", name, err))
		}
	}
	c := redirect.Config{IngressPort: s.ingressPort, EgressPort: s.egressPort, IPv6: s.ipv6}
	var err error
	c.User, err = redirect.ParseID(s.user)
	fault("ignore-uid", err)
	c.Group, err = redirect.ParseID(s.group)
	fault("ignore-gid", err)
	c.AppPorts, err = redirect.ParsePorts(s.appPorts)
	fault("app-ports", err)
	c.IgnoredPorts, err = redirect.ParsePorts(s.ignoredPorts)
	fault("egress-ignored-ports", err)
	c.IgnoredIPs, err = redirect.ParseIPs(s.ignoredIPs)
	fault("egress-ignored-ips", err)
	if err := errors.Join(faults...); err != nil {
		return redirect.Config{}, &usageError{err}
	}
	if err := c.Validate(); err != nil {
		return redirect.Config{}, &usageError{err}
	}
	return c, nil
}
