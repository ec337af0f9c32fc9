// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package compat_test

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

var update = flag.Bool("update", false, "write the golden files again, and remove those that nothing asks for")

// goldens holds the findings of each example that has any. An example without a file has none.
const goldens = "testdata/findings"

func golden(e example) string {
	name := strings.NewReplacer("/", "_", " ", "_").Replace(e.name)
	return path.Join(goldens, name+".txt")
}

// compareFindings holds the findings of an example against those that were reviewed.
func compareFindings(t *testing.T, e example, findings []mesh.Finding) {
	t.Helper()
	var b strings.Builder
	for _, f := range findings {
		if f.Message == "" || f.Object.File == "" || f.Object.Line == 0 || (f.Severity != mesh.SeverityInfo && f.Mend == "") {
			t.Errorf("a finding must have message, place and mend: %+v", f)
		}
		fmt.Fprintf(&b, "%s:%d: %s %s: %s: %s: %s\n", f.Object.File, f.Object.Line, f.Severity, f.Reason, f.Object, f.Field, f.Message)
	}
	got := strings.ReplaceAll(filepath.ToSlash(b.String()), corpus+"/", "")
	file := golden(e)
	want, err := os.ReadFile(filepath.Clean(file))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	diff := cmp.Diff(string(want), got)
	switch {
	case diff == "":
	case !*update:
		t.Errorf("%s: findings differ (-want +got); review, then -update:\n%s", file, diff)
	case got == "":
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	default:
		if err := os.MkdirAll(goldens, 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// prune fails for, or with -update removes, golden files of examples that are no more.
func prune(t *testing.T, wanted map[string]bool) {
	t.Helper()
	found, err := filepath.Glob(goldens + "/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range found {
		if wanted[filepath.ToSlash(file)] {
			continue
		}
		if !*update {
			t.Errorf("%s belongs to no example; run with -update", file)
		} else if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}
