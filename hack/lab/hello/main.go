// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Command hello stands for the image "hello-world" of App Mesh's walkthroughs, whose source was never published: it answers on port 9080 with what
// HW_RESPONSE holds, and on /ping for health checks. The lab puts it into an image.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	if err := serve(":9080"); err != nil {
		fmt.Fprintln(os.Stderr, "hello:", err)
		os.Exit(1)
	}
}

// serve answers until it is told to end, and then finishes the requests that it has.
func serve(address string) error {
	response, set := os.LookupEnv("HW_RESPONSE")
	if !set {
		response = "hello world"
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, response) })
	mux.HandleFunc("GET /ping", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "pong") })
	server := &http.Server{Addr: address, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	told, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		<-told.Done()
		patience, cancel := context.WithTimeout(context.WithoutCancel(told), 10*time.Second)
		defer cancel()
		ended <- server.Shutdown(patience)
	}()
	if err := server.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}
