// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Bench measures delivery: Tulle as it runs, in a process of its own and driven by writes to files, beside the least that a gRPC server can do
// (the floor) and beside go-control-plane's SnapshotCache, which most control planes use. Run it with `make bench`.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx)
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	tulle := flag.String("tulle", "../../bin/tulle", "the control plane's binary")
	out := flag.String("out", "", "file for the result as Markdown; empty for standard output alone")
	count := flag.Int("changes", 40, "changes of each kind at each size")
	only := flag.String("sizes", "100x100,200x300,1000x1000", "PROXIESxSERVICES, with commas between")
	baselines := flag.String("baselines", "delivery,floor,snapshots", "what to compare with")
	serve := flag.String("serve", "", "internal: be this baseline")
	scopePath := flag.String("scope", "", "internal: what the baseline serves")
	socket := flag.String("socket", "", "internal: where the baseline listens")
	flag.Parse()
	if *serve != "" {
		return serveBaseline(ctx, *serve, *scopePath, *socket)
	}
	var all []result
	for text := range strings.SplitSeq(*only, ",") {
		sz, err := parseSize(text)
		if err != nil {
			return err
		}
		results, err := compare(ctx, *tulle, sz, *count, strings.FieldsFunc(*baselines, func(r rune) bool { return r == ',' }))
		if err != nil {
			return err
		}
		for _, r := range results {
			_, _ = fmt.Fprintln(os.Stderr, r.line())
		}
		all = append(all, results...)
	}
	text := report(all)
	_, _ = fmt.Fprint(os.Stdout, text)
	if *out == "" {
		return nil
	}
	if err := os.WriteFile(*out, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write result: %w", err)
	}
	return nil
}

// parseSize reads PROXIESxSERVICES. Up to 500 services a proxy has 5 backends, beyond that 10.
func parseSize(text string) (size, error) {
	s := size{Endpoints: 10, Backends: 5}
	if _, err := fmt.Sscanf(text, "%dx%d", &s.Clients, &s.Services); err != nil {
		return s, fmt.Errorf("size %q: want PROXIESxSERVICES, such as 200x300", text)
	}
	if s.Services > 500 {
		s.Backends = 10
	}
	if s.Clients < 1 || s.Services < s.Backends+1 {
		return s, fmt.Errorf("size %q: want at least 1 proxy and %d services", text, s.Backends+1)
	}
	return s, nil
}
