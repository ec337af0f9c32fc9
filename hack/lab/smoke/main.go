// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Command smoke tries out a running lab: pods, Services, names, webhooks, sidecars and all else that Tulle's tests lean on. "hack/lab/test" calls it.
// It is also the program in the pods that it makes: a webhook, and a stand-in for a proxy.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"
)

//go:embed smoke.yaml
var manifest string

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	verb := ""
	if len(os.Args) > 1 {
		verb = os.Args[1]
	}
	var err error
	switch verb {
	case "webhook":
		err = serveWebhook(os.Stdout)
	case "intercept":
		err = intercept()
	default:
		err = try(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "smoke:", err)
		os.Exit(1) //nolint:gocritic // nothing is left to cancel
	}
}

// A check is one sentence about the cluster and the way to see whether it holds.
type check struct {
	name string
	try  func(context.Context) error
}

// try runs all checks, one after the other, and prints a line for each.
func try(ctx context.Context, out io.Writer) error {
	registry, ok := os.LookupEnv("TULLE_LAB_REGISTRY")
	if !ok {
		return fmt.Errorf("TULLE_LAB_REGISTRY is not set: start it as hack/lab/test")
	}
	if err := pushImage(ctx, registry); err != nil {
		return fmt.Errorf("pushing the image of the checks: %w", err)
	}
	passed, failed := 0, 0
	for _, c := range checks() {
		begin := time.Now() //nolint:forbidigo // a person reads how long it took
		err := c.try(ctx)
		word := "PASS"
		if err != nil {
			word = "FAIL"
			failed++
		} else {
			passed++
		}
		if _, err := fmt.Fprintf(out, "%s %5.1f s  %s\n", word, time.Since(begin).Seconds(), c.name); err != nil {
			return err
		}
		if err != nil {
			if _, err := fmt.Fprintf(out, "     %v\n", err); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	if _, err := fmt.Fprintf(out, "%d passed, %d failed\n", passed, failed); err != nil {
		return err
	}
	if failed > 0 {
		return fmt.Errorf("%d checks failed", failed)
	}
	return nil
}
