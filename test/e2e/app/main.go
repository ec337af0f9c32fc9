// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Command app plays the applications of App Mesh's public walkthroughs in the end-to-end tests: servers that name their colour, fronts that ask other
// servers, and a load generator that counts what came back. images.txt says which image's program plays which role.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	err := run(ctx, os.Args[1:])
	cancel()
	if err != nil {
		fmt.Fprintln(os.Stderr, "app:", err)
		os.Exit(1)
	}
}

// run plays the role that the first argument names. Further arguments are the role's own, and those that a manifest adds are left alone.
func run(ctx context.Context, args []string) error {
	if len(args) == 0 {
		return errors.New("usage: app color | flaky | front | front-http2 | djapp | grpc-client | grpc-server | idle | load")
	}
	switch args[0] {
	case "color":
		return serve(ctx, newColor(0))
	case "flaky":
		return serve(ctx, newColor(0.5))
	case "front":
		return serve(ctx, newFront(false))
	case "front-http2":
		return serve(ctx, newFront(true))
	case "djapp":
		return serveBand(ctx)
	case "grpc-client":
		return serveGRPCClient(ctx)
	case "grpc-server":
		return serveGRPC(ctx)
	case "idle":
		<-ctx.Done()
		return nil
	case "load":
		return runLoad(ctx, args[1:], os.Stdin, os.Stdout)
	default:
		return fmt.Errorf("no role %q", args[0])
	}
}

// setting is the first of the environment's variables that is set, or else the fallback.
func setting(fallback string, names ...string) string {
	for _, name := range names {
		if value, set := os.LookupEnv(name); set {
			return value
		}
	}
	return fallback
}

// seconds is a variable of the environment that holds a number of seconds; nothing is none.
func seconds(name string) (time.Duration, error) {
	n, err := strconv.ParseFloat(setting("0", name), 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return time.Duration(n * float64(time.Second)), nil
}

// port is where the walkthroughs' servers listen.
func port() string { return ":" + setting("8080", "PORT", "SERVER_PORT") }

// serve answers with HTTP/1.1 and HTTP/2 without TLS, and with "pong" on /ping, until the context ends. It then goes on for LINGER seconds, as an application does that
// waits until nobody calls it any more, and finishes the requests that it has.
func serve(ctx context.Context, handler http.Handler) error {
	linger, err := seconds("LINGER")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/ping", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("pong")) })
	mux.Handle("/", handler)
	server := &http.Server{Addr: port(), Handler: mux, ReadHeaderTimeout: 10 * time.Second, Protocols: new(http.Protocols)}
	server.Protocols.SetHTTP1(true)
	server.Protocols.SetUnencryptedHTTP2(true)
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		<-time.After(linger)
		patience, cancel := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
		defer cancel()
		ended <- server.Shutdown(patience)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
