// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package cli is the command line of tulle: one file a verb. cmd/tulle alone calls it.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tulle-mesh/tulle/internal/clock"
)

// Env is the world that the commands work in; cmd/tulle fills it in from the process.
type Env struct {
	Stdin  io.Reader
	Stdout io.Writer
	Stderr io.Writer
	// Color says that Stdout is a terminal that takes colours.
	Color bool
	// Executable is the path of this program, for commands that start it again.
	Executable string
	// Getenv reads the environment.
	Getenv func(string) string
	Clock  clock.Clock
}

// The exit codes of all commands.
const (
	codeOK    = 0
	codeError = 1
	codeUsage = 2
)

// untilSignal is for commands that run until they are told to end: the context ends with SIGINT or SIGTERM, and the signal after that kills.
// Other commands leave the signals alone, which then kill at once.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// complain writes to Stderr. Where even that fails there is nobody left to tell.
func (e Env) complain(format string, args ...any) { _, _ = fmt.Fprintf(e.Stderr, format, args...) }

// exitError ends a command with a code and without a further word.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// usageError is wrong use of a command: exit code 2, with a pointer to the help.
type usageError struct{ error }

func (e usageError) Unwrap() error { return e.error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// Run runs the command that args name and returns the exit code.
func Run(ctx context.Context, env Env, args []string) int {
	root := newRoot(env) //nolint:contextcheck // commands run under the context that ExecuteContextC is given, which they take from cobra
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	cmd, err := root.ExecuteContextC(ctx)
	var code exitError
	var usage usageError
	switch {
	case err == nil:
		return codeOK
	case errors.As(err, &code):
		return int(code)
	case errors.As(err, &usage) || strings.HasPrefix(err.Error(), "unknown command"):
		env.complain("error: %v\nSee '%s --help'.\n", err, cmd.CommandPath())
		return codeUsage
	default:
		env.complain("error: %v\n", err)
		return codeError
	}
}

func newRoot(env Env) *cobra.Command {
	root := &cobra.Command{
		Use:   "tulle",
		Short: "A self-hosted control plane for App Mesh's API, with real Envoy as its data plane",
		Long: `Tulle runs AWS App Mesh's API without AWS: its custom resources (appmesh.k8s.aws v1beta1 and v1beta2)
become configuration for real Envoy proxies.`,
		Example: `  # See what is wrong in a folder of manifests
  tulle check -f manifests/

  # Run a control plane from it
  tulle serve -f manifests/ --xds 127.0.0.1:18000 --http 127.0.0.1:8080

  # Watch App Mesh's DJ app run on real Envoys, here and now
  tulle playground djapp`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newController(env), newInject(env), newServe(env), newCheck(env), newTranslate(env), newStatus(env), newDescribe(env), newProxies(env), newCRDs(env), newWait(env), newPlayground(env), newVersion(env))
	for _, c := range root.Commands() {
		wrapArgs(c)
	}
	return root
}

// wrapArgs makes a wrong number of arguments a usage error.
func wrapArgs(c *cobra.Command) {
	check := c.Args
	if check == nil {
		check = cobra.NoArgs
	}
	c.Args = func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}
