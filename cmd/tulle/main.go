// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Command tulle is the control plane and its command line.
package main

import (
	"context"
	"os"

	"golang.org/x/term"

	"github.com/tulle-mesh/tulle/internal/cli"
	"github.com/tulle-mesh/tulle/internal/clock"
)

func main() {
	os.Exit(cli.Run(context.Background(), env(), os.Args[1:]))
}

func env() cli.Env {
	executable, err := os.Executable()
	if err != nil {
		executable = os.Args[0]
	}
	return cli.Env{
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		Color:      term.IsTerminal(int(os.Stdout.Fd())) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb",
		Executable: executable,
		Getenv:     os.Getenv,
		Clock:      clock.Real{},
	}
}
