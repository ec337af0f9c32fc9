// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Command tulle is the control plane and its command line.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/term"

	"github.com/tulle-mesh/tulle/internal/cli"
	"github.com/tulle-mesh/tulle/internal/clock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := cli.Run(ctx, env(), os.Args[1:])
	stop()
	os.Exit(code)
}

func env() cli.Env {
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	return cli.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Color:      term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "",
		Executable: executable,
		Getenv:     os.Getenv,
		Clock:      clock.Real{},
	}
}
