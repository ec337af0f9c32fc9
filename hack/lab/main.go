// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Command lab is a real one-node Kubernetes on this machine: built from Go modules, run by Debian's containerd, and kept in namespaces of its own, so that
// ending one process leaves the machine as it was. The scripts beside it (up, down, env, push, enter) call it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"syscall"
	"time"
)

const usage = "usage: lab up | down | env | push ARCHIVE[=NAME:TAG]... | enter COMMAND..."

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	l, err := locate()
	if err != nil {
		return err
	}
	switch verb, rest := args[0], args[1:]; {
	case verb == "up" && len(rest) == 0:
		return l.up(ctx, newProgress(os.Stdout))
	case verb == "down" && len(rest) == 0:
		return l.down(os.Stdout)
	case verb == "env" && len(rest) == 0:
		return l.printEnv(os.Stdout)
	case verb == "push" && len(rest) > 0:
		return l.push(ctx, os.Stdout, rest)
	case verb == "enter" && len(rest) > 0:
		return l.enter(rest)
	case verb == nodeVerb && len(rest) == 0:
		return l.node(ctx)
	default:
		return errors.New(usage)
	}
}

// A lab is one cluster, by name. Several run side by side.
type lab struct {
	name string
	// cache is for everything that outlives a cluster: programs by version, and how they were built.
	cache string
	// state is for everything that does not.
	state string
}

// locate finds the lab that TULLE_LAB names ("lab" by default).
func locate() (lab, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return lab{}, fmt.Errorf("no cache folder: set HOME or XDG_CACHE_HOME: %w", err)
	}
	name, _ := os.LookupEnv("TULLE_LAB")
	if name == "" {
		name = "lab"
	}
	if !regexp.MustCompile("^[a-z0-9][a-z0-9-]{0,30}$").MatchString(name) {
		return lab{}, fmt.Errorf("TULLE_LAB=%q: a lab's name is of lower-case letters, digits and hyphens, 31 at most", name)
	}
	cache = filepath.Join(cache, "tulle", "lab")
	return lab{name: name, cache: cache, state: filepath.Join(cache, "state", name)}, nil
}

// in is a path in the folder of the cluster's state.
func (l lab) in(path ...string) string { return filepath.Join(append([]string{l.state}, path...)...) }

// kubeconfig is for the administrator on this machine.
func (l lab) kubeconfig() string { return l.in("kubeconfig") }

// program is the path of a program that is kept beside this one.
func (l lab) program(name string) string { return filepath.Join(l.cache, "bin", name) }

// progress tells what is done and how long it took since the start.
type progress struct {
	out   *os.File
	begin time.Time
}

func newProgress(out *os.File) progress {
	return progress{out: out, begin: time.Now()} //nolint:forbidigo // a person watches: this is the one clock of the lab
}

func (p progress) say(format string, args ...any) {
	fmt.Fprintf(p.out, "%6.1f s  %s\n", time.Since(p.begin).Seconds(), fmt.Sprintf(format, args...)) //nolint:errcheck // nobody left to tell
}
