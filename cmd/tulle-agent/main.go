// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Command tulle-agent starts Envoy beside an application, feeds it its configuration, and captures the application's traffic for it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tulle-mesh/tulle/internal/version"
)

func main() {
	os.Exit(execute())
}

// execute returns the exit code: 0 for success, 1 for failure, 2 for wrong use.
func execute() int {
	if asPlugin(os.Args) {
		return plugin(context.Background())
	}
	cmd, err := newCommand().ExecuteC()
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, "tulle-agent:", err)
	if !isUse(err) {
		return 1
	}
	fmt.Fprintf(os.Stderr, "See '%s --help'.\n", cmd.CommandPath())
	return 2
}

// usageError is the caller's mistake in flags, arguments or environment.
type usageError struct{ err error }

func (e *usageError) Error() string { return e.err.Error() }
func (e *usageError) Unwrap() error { return e.err }

// isUse says whether an error is one of use. Cobra knows of no type for a command or an argument that nobody asked for.
func isUse(err error) bool {
	_, wrong := errors.AsType[*usageError](err)
	return wrong || strings.HasPrefix(err.Error(), "unknown command ")
}

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
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &usageError{err} })
	root.AddCommand(newRunCommand(), newBootstrapCommand(), newReadyCommand(), newDrainCommand(), newRedirectCommand(), newCNICommand(), newVersionCommand())
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
