// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Command tulle-agent starts Envoy beside an application, feeds it its configuration, and captures the application's traffic for it.
package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/tulle-mesh/tulle/internal/version"
)

func main() {
	os.Exit(execute())
}

// execute returns the exit code: 0 for success, 1 for failure, 2 for wrong use.
func execute() int {
	err := newCommand().Execute()
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "tulle-agent:", err)
	if _, wrong := errors.AsType[*usageError](err); wrong {
		return 2
	}
	return 1
}

// usageError is the caller's mistake in flags, arguments or environment.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "tulle-agent",
		Short: "Run Envoy as the proxy of a workload in the mesh",
		Long: `tulle-agent is what stands beside a workload in the mesh. It starts Envoy with
a connection to the control plane, watches it, ends it without losing a
request, and redirects the workload's traffic through it.`,
		Example: `  tulle-agent redirect --app-ports 8080
  tulle-agent run --node mesh/howto/virtualNode/color --xds unix:///run/tulle/xds.sock`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          cobra.NoArgs,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newRunCommand(), newBootstrapCommand(), newReadyCommand(), newDrainCommand(), newRedirectCommand(), newVersionCommand())
	return root
}

func newVersionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  tulle-agent version",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(cmd.OutOrStdout(), "tulle-agent %s (%s, %s/%s)\n", version.String(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}
