// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// output runs a program and returns what it prints, without the space around it.
func output(ctx context.Context, input, name string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, name, args...) //nolint:gosec // the checks are written in this program
	cmd.Stdin = strings.NewReader(input)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if err != nil {
		return strings.TrimSpace(string(out)), fmt.Errorf("%s %s: %w: %s%s", name, strings.Join(args, " "), err, out, errs.String())
	}
	return strings.TrimSpace(string(out)), nil
}

// kubectl runs kubectl in the namespace of the checks; the arguments are one string, split at spaces.
func kubectl(ctx context.Context, args string, more ...string) (string, error) {
	return output(ctx, "", "kubectl", append(append([]string{"-n", "smoke"}, strings.Fields(args)...), more...)...)
}

// inPod runs a line of shell in a container of a pod.
func inPod(ctx context.Context, pod, container, line string) (string, error) {
	return kubectl(ctx, "exec "+pod+" -c "+container+" -- sh -c", line)
}

// says is a check that a command's output has a text in it.
func says(want string, command func(context.Context) (string, error)) func(context.Context) error {
	return func(ctx context.Context) error {
		got, err := command(ctx)
		if err != nil {
			return err
		}
		if !strings.Contains(got, want) {
			return fmt.Errorf("want %q in %q", want, got)
		}
		return nil
	}
}

// in is inPod as a value.
func in(pod, container, line string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return inPod(ctx, pod, container, line) }
}

// get is kubectl as a value.
func get(args string, more ...string) func(context.Context) (string, error) {
	return func(ctx context.Context) (string, error) { return kubectl(ctx, args, more...) }
}

// soon repeats a check until it holds, for a minute at most.
func soon(try func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		var last error
		for {
			err := try(ctx)
			if err == nil {
				return nil
			}
			if ctx.Err() == nil {
				last = err
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("not within a minute: %w", last)
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
}
