// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"unicode/utf8"

	"github.com/tulle-mesh/tulle/internal/files"
)

// FuzzManifests feeds any bytes through reading and decoding: nothing may panic, and every finding must be one that can
// be shown.
func FuzzManifests(f *testing.F) {
	for _, pattern := range []string{"testdata/*.in.*", "../decode/testdata/*.in.yaml", corpus + "/v1beta1/djapp/*.yaml"} {
		names, err := filepath.Glob(pattern)
		if err != nil || len(names) == 0 {
			f.Fatalf("no seeds in %s: %v", pattern, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		changes, err := files.New(files.Options{Paths: []string{"-"}, Stdin: bytes.NewReader(text)}).Load()
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range changes.Findings {
			for _, finding := range list {
				if finding.Message == "" || finding.Reason == "" || finding.Severity == "" {
					t.Errorf("a finding says nothing: %+v", finding)
				}
				if !utf8.ValidString(finding.Message) {
					t.Errorf("a message is not UTF-8: %q", finding.Message)
				}
			}
		}
	})
}
