// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/files"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

var update = flag.Bool("update", false, "write the golden outputs anew, and remove those without an input")

// golden compares got with a file, or writes it.
func golden(t *testing.T, name, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(name, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s differs (-want +got), write it anew with -update:\n%s", name, diff)
	}
}

// report writes the keys and the findings of changes, with file names relative to root.
func report(root string, changes mesh.Changes) string {
	var out strings.Builder
	for _, o := range changes.Set {
		fmt.Fprintf(&out, "set %s\n", o.Key())
	}
	for _, key := range changes.Removed {
		fmt.Fprintf(&out, "removed %s\n", key)
	}
	var all []mesh.Finding
	for _, list := range changes.Findings {
		all = append(all, list...)
	}
	for _, f := range mesh.SortFindings(all) {
		fmt.Fprintf(&out, "%s %s %s:%d %s\n", f.Severity, f.Reason, f.Object.File, f.Object.Line, f.Object)
		for _, line := range []string{"field: " + f.Field, "value: " + f.Value, f.Message, f.Mend} {
			if !strings.HasSuffix(line, ": ") {
				out.WriteString("    " + line + "\n")
			}
		}
	}
	return strings.ReplaceAll(out.String(), root, "")
}

func load(t *testing.T, options files.Options) (*files.Source, mesh.Changes) {
	t.Helper()
	source := files.New(options)
	changes, err := source.Load()
	if err != nil {
		t.Fatal(err)
	}
	return source, changes
}

// TestBadInputSaysWhatIsWrongAndWhere reads testdata/<case>.in.yaml and compares what is found with testdata/<case>.out.txt.
func TestBadInputSaysWhatIsWrongAndWhere(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.in.*")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	if *update {
		prune(t, inputs)
	}
	for _, input := range inputs {
		base, _, _ := strings.Cut(input, ".in.")
		t.Run(filepath.Base(base), func(t *testing.T) {
			t.Parallel()
			source, changes := load(t, files.Options{Paths: []string{input}})
			golden(t, base+".out.txt", report("testdata/", changes)+fmt.Sprintf("%+v\n", source.Summary()))
		})
	}
}

func prune(t *testing.T, inputs []string) {
	t.Helper()
	outputs, err := filepath.Glob("testdata/*.out.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, output := range outputs {
		base := strings.TrimSuffix(output, ".out.txt")
		if !slices.ContainsFunc(inputs, func(input string) bool { return strings.HasPrefix(input, base+".in.") }) && filepath.Base(base) != "corpus" {
			if err := os.Remove(output); err != nil {
				t.Fatal(err)
			}
		}
	}
}

const corpus = "../../test/compat/testdata/corpus"

// TestCorpusLoads loads each of AWS's public examples by itself and compares what is found with testdata/corpus.out.txt:
// nothing but what is at fault there. Files that belong to further steps come after the others, as in the walkthroughs.
func TestCorpusLoads(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	for _, dir := range directories(t) {
		_, changes := load(t, files.Options{Paths: []string{dir}, Decode: decode.Options{}})
		count := map[mesh.Kind]int{}
		for _, o := range changes.Set {
			count[o.Key().Kind]++
		}
		fmt.Fprintf(&out, "== %s %v\n", strings.TrimPrefix(dir, corpus+"/"), count)
		// That a later step gives an object anew is how the examples work.
		for source, list := range changes.Findings {
			changes.Findings[source] = slices.DeleteFunc(list, func(f mesh.Finding) bool { return f.Reason == mesh.ReasonDuplicate })
		}
		changes.Set = nil
		out.WriteString(report(corpus+"/", changes))
	}
	golden(t, "testdata/corpus.out.txt", out.String())
}

// directories are those of the corpus that hold manifests.
func directories(t *testing.T) []string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(corpus, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && filepath.Ext(path) == ".yaml" && !slices.Contains(list, filepath.Dir(path)) {
			list = append(list, filepath.Dir(path))
		}
		return err
	})
	if err != nil || len(list) < 30 {
		t.Fatalf("the corpus has %d directories: %v", len(list), err)
	}
	slices.Sort(list)
	return list
}
