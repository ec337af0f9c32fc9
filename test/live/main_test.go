// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package live_test sends traffic through real Envoys, each in network namespaces of its own.
package live_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/tulle-mesh/tulle/internal/playground/sandbox"
)

// These tests run inside a sandbox of Linux namespaces: the test program starts itself again in there, so that a test is a node of a cluster, makes pods,
// and may stand in them as their application or as a client. Nothing of it outlives the test program.
const (
	// marker leads this executable to its parts inside.
	marker = "live-test"
	// roleTests runs the tests, inside.
	roleTests = "tests"
	// begun is what the tests inside say first; without it the sandbox could not be made.
	begun = "begun"
	// variables that say where the tests run, or why they cannot.
	insideVariable = "TULLE_LIVE_INSIDE"
	cannotVariable = "TULLE_LIVE_CANNOT"
)

func TestMain(m *testing.M) {
	if len(os.Args) < 3 || os.Args[1] != marker {
		os.Exit(outside(m))
	}
	if os.Args[2] == roleTests {
		os.Exit(inside(m, os.Args[3:]))
	}
	if err := part(os.Args[2], os.Args[3:]); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// part plays a part of the sandbox.
func part(role string, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	switch role {
	case sandbox.RoleInit:
		return sandbox.Init(argv(), args)
	case sandbox.RolePod:
		return sandbox.Hold(ctx, args)
	case sandbox.RoleEnter:
		return sandbox.Enter(args)
	}
	return fmt.Errorf("no role %q", role)
}

// outside starts the tests inside. Where this machine cannot do that, it runs them here, so that each says why.
func outside(m *testing.M) int {
	bind, remove, err := programs()
	defer remove()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if bind["envoy"], err = envoy(); err == nil {
		var ran bool
		if ran, err = runInside(bind); ran {
			if err != nil {
				return 1
			}
			return 0
		}
	}
	if err := os.Setenv(cannotVariable, err.Error()); err != nil {
		return 1
	}
	return m.Run()
}

// runInside runs the tests in a sandbox; false says that it could not be made.
func runInside(bind map[string]string) (bool, error) {
	paths := make([]string, 0, len(bind))
	for _, path := range bind {
		paths = append(paths, path)
	}
	dir, err := sandbox.Scratch(paths...)
	if err != nil {
		return false, err
	}
	ran := false
	err = sandbox.Run(context.Background(), sandbox.Config{
		Self: argv(), Program: append([]string{roleTests, dir}, testFlags(os.Args[1:])...),
		Bind: bind, Dir: dir, Stderr: os.Stderr,
		Env: append(os.Environ(), "PATH="+os.ExpandEnv("$PATH:/usr/sbin:/sbin"), "TMPDIR="+dir, "HOME="+dir, insideVariable+"="+dir),
		Event: func(line []byte) {
			ran = ran || string(line) == begun
		},
	})
	return ran, err
}

// testFlags are the test flags that make sense inside, where no file of the machine can be written.
func testFlags(args []string) []string {
	var kept []string
	for _, a := range args {
		name, _, _ := strings.Cut(a, "=")
		switch strings.TrimPrefix(name, "-test.") {
		case "testlogfile", "gocoverdir", "coverprofile", "cpuprofile", "memprofile", "blockprofile", "mutexprofile", "trace", "outputdir":
		default:
			kept = append(kept, a)
		}
	}
	return kept
}

// inside runs the tests as a program of the sandbox.
func inside(m *testing.M, args []string) int {
	events := os.NewFile(sandbox.EventsFD, "events")
	if _, err := events.WriteString(begun + "\n"); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Args = append(os.Args[:1:1], args[1:]...)
	return m.Run()
}

// envoy finds the real Envoy.
func envoy() (string, error) {
	path, set := os.LookupEnv("TULLE_ENVOY")
	if !set || path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no Envoy: set TULLE_ENVOY: %w", err)
		}
		path = filepath.Join(cache, "tulle", "envoy", "1.40.0", "envoy")
	}
	found, err := exec.LookPath(path)
	if err != nil {
		return "", fmt.Errorf("no Envoy: run hack/envoy.sh, or set TULLE_ENVOY: %w", err)
	}
	return found, nil
}

// programs finds those of TULLE_BIN, or builds them, by the name that they have inside; remove removes what was built.
func programs() (bind map[string]string, remove func(), err error) {
	remove = func() {}
	dir, set := os.LookupEnv("TULLE_BIN")
	if !set || dir == "" {
		if dir, err = os.MkdirTemp("", "tulle-bin"); err != nil {
			return nil, remove, err
		}
		remove = func() { _ = os.RemoveAll(dir) }
		build := exec.CommandContext(context.Background(), "go", "build", "-o", dir+"/", "./cmd/...")
		build.Dir = filepath.Join("..", "..")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := build.CombinedOutput(); err != nil {
			return nil, remove, fmt.Errorf("building the programs: %w: %s", err, out)
		}
	}
	bind = map[string]string{}
	for _, name := range []string{"tulle", "tulle-agent"} {
		if bind[name], err = filepath.Abs(filepath.Join(dir, name)); err != nil {
			return nil, remove, err
		}
		if _, err := os.Stat(bind[name]); err != nil {
			return nil, remove, fmt.Errorf("TULLE_BIN: %w: make build", err)
		}
	}
	return bind, remove, nil
}
