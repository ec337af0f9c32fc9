// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

// Package e2e_test runs the walkthroughs of App Mesh, word for word, and cases of its users on a real cluster: the lab that "make e2e" brings up. The tests
// type what the documents print, through bash, kubectl and helm, and look at what comes back.
//
// Tests that install or uninstall the charts are not parallel; those that only need the controller to be there call installed and may be.
package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// world is what all tests share: where things are on this machine.
type world struct {
	// root is the repository.
	root string
	// charts is the address of the Helm repository that holds the packaged charts.
	charts string
	// out is for what is kept when a test fails.
	out string
}

// here is set once, before any test runs.
var here world

func TestMain(m *testing.M) {
	code, err := prepare(m)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "e2e:", err)
		if _, inCI := os.LookupEnv("CI"); inCI {
			code = 1
		}
	}
	os.Exit(code)
}

// prepare serves the charts and gives Helm a home of its own, so that nobody's own repositories are touched. Without a lab there is nothing to run.
func prepare(m *testing.M) (int, error) {
	if _, isLab := os.LookupEnv("TULLE_LAB_REGISTRY"); !isLab {
		return 0, errors.New("skipped: no lab: run 'make e2e', or hack/lab/up and eval \"$(hack/lab/env)\"")
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		return 1, err
	}
	here.root, here.out = root, filepath.Join(root, "dist", "e2e")
	if _, err := os.Stat(filepath.Join(root, "dist", "charts", "index.yaml")); err != nil {
		return 1, fmt.Errorf("%w: run 'make charts'", err)
	}
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 1, err
	}
	here.charts = "http://" + listener.Addr().String()
	server := &http.Server{Handler: http.FileServer(http.Dir(filepath.Join(root, "dist", "charts"))), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = server.Serve(listener) }() // it ends with the process
	home, err := os.MkdirTemp("", "e2e-helm-")
	if err != nil {
		return 1, err
	}
	defer func() { _ = os.RemoveAll(home) }()
	for _, variable := range []string{"HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"} {
		if err := os.Setenv(variable, filepath.Join(home, variable)); err != nil {
			return 1, err
		}
	}
	code := m.Run()
	return code, server.Close()
}

// tell writes a line that is seen at once, for those who watch a long test.
func tell(t *testing.T, format string, args ...any) {
	t.Helper()
	_, _ = fmt.Fprintf(io.Writer(os.Stderr), "    %s: %s\n", t.Name(), fmt.Sprintf(format, args...))
}
