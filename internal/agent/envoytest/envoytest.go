// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package envoytest finds the real Envoy for tests; tests alone may call it.
package envoytest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Path returns the path of the Envoy that tests run: that of TULLE_ENVOY, else the one that hack/envoy.sh fetched. Where there is none the test is skipped, in
// CI it fails.
func Path(tb testing.TB) string {
	tb.Helper()
	path, set := os.LookupEnv("TULLE_ENVOY")
	if !set || path == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			cache = ""
		}
		path = filepath.Join(cache, "tulle", "envoy", "1.40.0", "envoy")
	}
	if _, err := exec.LookPath(path); err != nil {
		Unable(tb, "no Envoy: run hack/envoy.sh, or set TULLE_ENVOY: "+err.Error())
	}
	return path
}

// Unable ends a test that this machine cannot run: skipped, but in CI, where a test that cannot run is a failure.
func Unable(tb testing.TB, why string) {
	tb.Helper()
	if _, ci := os.LookupEnv("CI"); ci {
		tb.Fatal(why)
	}
	tb.Skip(why)
}

// Validate fails the test unless Envoy takes the file as its bootstrap.
func Validate(t *testing.T, file string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), Path(t), "--mode", "validate", "--log-level", "error", "-c", file) //nolint:gosec // G204: a test names both
	if out, err := command.CombinedOutput(); err != nil {
		t.Errorf("Envoy refuses %s: %v\n%s", file, err, out)
	}
}
