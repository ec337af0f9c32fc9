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
	"strings"
	"syscall"
	"time"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "lab:", err)
		os.Exit(1)
	}
}

// A verb is what can be asked of a lab. Most take no further words.
type verb struct {
	name  string
	words string
	do    func(ctx context.Context, l lab, args []string) error
}

func verbs() []verb {
	return []verb{
		{"build", "", func(ctx context.Context, l lab, _ []string) error {
			return l.buildComponents(ctx, newProgress(os.Stdout))
		}},
		{"up", "", func(ctx context.Context, l lab, _ []string) error { return l.up(ctx, newProgress(os.Stdout)) }},
		{"down", "", func(_ context.Context, l lab, _ []string) error { return l.down(os.Stdout) }},
		{"env", "", func(_ context.Context, l lab, _ []string) error { return l.printEnv(os.Stdout) }},
		{"push", "ARCHIVE[=NAME:TAG]...", func(ctx context.Context, l lab, args []string) error { return l.push(ctx, os.Stdout, args) }},
		{"apps", "PROGRAM LIST", func(ctx context.Context, l lab, args []string) error { return l.pushApps(ctx, os.Stdout, args) }},
		{"enter", "COMMAND...", func(_ context.Context, l lab, args []string) error { return l.enter(args) }},
		{nodeVerb, "", func(ctx context.Context, l lab, _ []string) error { return l.node(ctx) }},
	}
}

func run(ctx context.Context, args []string) error {
	usage := "usage:"
	for _, v := range verbs() {
		if v.name == nodeVerb && os.Getpid() != 1 {
			continue // not for people
		}
		usage = strings.TrimSpace(usage+" lab "+v.name+" "+v.words) + " |"
		if len(args) == 0 || args[0] != v.name || (v.words == "") != (len(args) == 1) {
			continue
		}
		l, err := locate()
		if err != nil {
			return err
		}
		return v.do(ctx, l, args[1:])
	}
	return errors.New(strings.TrimSuffix(usage, " |"))
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
