// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package golden compares what tests make of the inputs in their testdata folder with the outputs that stand beside them. Tests of any package may call it.
package golden

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const in, out = ".in.yaml", ".out.yaml"

// Compare runs a parallel subtest for each testdata/<case>.in.yaml, and compares what render makes of it with testdata/<case>.out.yaml. With update the outputs
// are written anew, and those without an input are removed.
func Compare(t *testing.T, update bool, render func(t *testing.T, input string) []byte) {
	t.Helper()
	inputs, err := filepath.Glob("testdata/*" + in)
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	if update {
		prune(t)
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), in), func(t *testing.T) {
			t.Parallel()
			got := render(t, input)
			output := strings.TrimSuffix(input, in) + out
			if update {
				if err := os.WriteFile(output, got, 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(output) //nolint:gosec // G304: a file of the test's own folder
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs (-want +got), write it anew with -update:\n%s", output, diff)
			}
		})
	}
}

func prune(t *testing.T) {
	t.Helper()
	outputs, err := filepath.Glob("testdata/*" + out)
	if err != nil {
		t.Fatal(err)
	}
	for _, output := range outputs {
		if _, err := os.Stat(strings.TrimSuffix(output, out) + in); err != nil {
			if err := os.Remove(output); err != nil {
				t.Fatal(err)
			}
		}
	}
}
