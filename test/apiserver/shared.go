// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package apiserver

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
)

// Shared is one server for all tests of a package, started by the first that asks. In the package's tests:
//
//	var server apiserver.Shared
//	func TestMain(m *testing.M) { os.Exit(server.Main(m)) }
type Shared struct {
	once   sync.Once
	server *Server
	err    error
}

// Main runs the tests and ends the server; it returns the exit code.
func (s *Shared) Main(m *testing.M) int {
	code := m.Run()
	if s.server != nil {
		if err := s.server.Stop(); err != nil && code == 0 {
			return 1
		}
	}
	return code
}

// Get returns the server. Where its programs are not built, the test is skipped, and fails in CI.
func (s *Shared) Get(t *testing.T) *Server {
	t.Helper()
	s.once.Do(func() { s.server, s.err = Start(context.WithoutCancel(t.Context())) })
	switch {
	case s.err == nil:
	case errors.Is(s.err, errNotBuilt) && !inCI():
		t.Skip(s.err)
	default:
		t.Fatal(s.err)
	}
	return s.server
}

// inCI says that a test which cannot run is a failure.
func inCI() bool {
	value, _ := os.LookupEnv("CI")
	return value != ""
}
