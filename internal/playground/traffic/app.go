// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package traffic is both ends of a playground's requests: the stand-in for applications, single requests, and load that
// is counted and judged. Only package playground calls it.
package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"
)

// Ready is the line that a stand-in writes once it accepts connections.
const Ready = "ready\n"

// Serve is the stand-in for the hello-world image of the App Mesh examples: it answers / with the response and /ping
// with pong on the address, until ctx ends, and then finishes what is in flight. Once it listens it writes Ready.
func Serve(ctx context.Context, address, response string, stdout io.Writer) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = io.WriteString(w, response) // a client that has gone needs no answer
	})
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "pong") })
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("stand-in: %w", err)
	}
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	if _, err := io.WriteString(stdout, Ready); err != nil {
		return fmt.Errorf("stand-in: %w", err)
	}
	select {
	case err := <-ended:
		return fmt.Errorf("stand-in: %w", err)
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := server.Shutdown(grace); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("stand-in: %w", err)
	}
	return nil
}
