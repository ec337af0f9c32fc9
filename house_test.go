// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package tulle_test holds the repository to its own rules, which linters do not know.
package tulle_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The rules of the house that no linter knows. CONTRIBUTING.md says them in words.

// goFiles are all Go files that people write, with their package's folder.
func goFiles(t *testing.T) map[string][]string {
	t.Helper()
	dirs := map[string][]string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == ".git" || d.Name() == "bin" || d.Name() == "dist"):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && !strings.HasPrefix(d.Name(), "zz_generated"):
			dirs[filepath.Dir(path)] = append(dirs[filepath.Dir(path)], path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(dirs) < 10 {
		t.Fatalf("found only %d packages: the walk is broken", len(dirs))
	}
	return dirs
}

func parse(t *testing.T, path string, mode parser.Mode) *ast.File {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), path, nil, mode|parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestEveryPackageOpensWithASentenceThatSaysWhatItIsFor(t *testing.T) {
	t.Parallel()
	for dir, files := range goFiles(t) {
		var docs []string
		product := false
		for _, path := range files {
			if strings.HasSuffix(path, "_test.go") {
				continue
			}
			product = true
			if doc := parse(t, path, parser.PackageClauseOnly).Doc; doc != nil {
				docs = append(docs, doc.Text())
			}
		}
		if !product {
			continue
		}
		if len(docs) != 1 || len(strings.Fields(docs[0])) < 6 {
			t.Errorf("%s: want one package comment of at least six words, found %d", dir, len(docs))
		}
	}
}

func TestEveryFileNamesItsLicence(t *testing.T) {
	t.Parallel()
	for _, files := range goFiles(t) {
		for _, path := range files {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.HasPrefix(string(text), "// SPDX-License-Identifier: Apache-2.0\n// Copyright The Tulle Authors\n") {
				t.Errorf("%s: the first two lines must name licence and copyright", path)
			}
		}
	}
}

func TestNoPackageIsABag(t *testing.T) {
	t.Parallel()
	bags := regexp.MustCompile(`^(utils?|common|helpers?|types|base|misc|shared|lib)$`)
	for dir := range goFiles(t) {
		if bags.MatchString(filepath.Base(dir)) {
			t.Errorf("%s: name it for what it does, or put it beside its caller", dir)
		}
	}
}

// TestLayersHold repeats in the plain what .golangci.yml says, for those who run tests alone.
func TestLayersHold(t *testing.T) {
	t.Parallel()
	const module = "github.com/tulle-mesh/tulle/"
	forbidden := map[string][]string{
		"internal/mesh":   {module, "github.com/", "k8s.io/", "google.golang.org/"},
		"internal/store":  {module + "internal/decode", module + "internal/envoy", module + "internal/xds", module + "internal/plane", "k8s.io/", "google.golang.org/grpc"},
		"internal/envoy":  {module + "internal/store", module + "internal/xds", module + "internal/plane", module + "api", "k8s.io/", "google.golang.org/grpc"},
		"internal/xds":    {module, "k8s.io/"},
		"internal/decode": {module + "internal/envoy", module + "internal/xds", module + "internal/plane", "github.com/envoyproxy", "k8s.io/client-go"},
		"internal/files":  {module + "internal/envoy", module + "internal/xds", module + "internal/plane", "github.com/envoyproxy", "k8s.io/client-go"},
		"internal/plane":  {module + "internal/decode", module + "internal/files", module + "internal/cli", "k8s.io/"},
		"internal/agent":  {module + "internal/mesh", module + "internal/store", module + "internal/envoy", module + "internal/xds", module + "internal/plane", "k8s.io/"},
		"internal/identity": {
			module + "internal/mesh", module + "internal/decode", module + "internal/envoy", module + "internal/xds", module + "internal/plane", module + "internal/kube",
		},
		"internal/metrics": {module + "internal/decode", module + "internal/files", module + "internal/envoy", "k8s.io/"},
		"cmd":              {"k8s.io/", "github.com/envoyproxy"},
	}
	for dir, files := range goFiles(t) {
		for root, bad := range forbidden {
			if dir != root && !strings.HasPrefix(dir, root+"/") {
				continue
			}
			for _, path := range files {
				if strings.HasSuffix(path, "_test.go") {
					continue
				}
				for _, spec := range parse(t, path, parser.ImportsOnly).Imports {
					name := strings.Trim(spec.Path.Value, `"`)
					if strings.HasPrefix(name, module+root) {
						continue
					}
					for _, prefix := range bad {
						if strings.HasPrefix(name, prefix) {
							t.Errorf("%s imports %s: %s must not know %s", path, name, root, prefix)
						}
					}
				}
			}
		}
	}
}

// TestNothingImportsThePlaygroundButTheCommandLine keeps the control plane free of it.
func TestNothingImportsThePlaygroundButTheCommandLine(t *testing.T) {
	t.Parallel()
	for dir, files := range goFiles(t) {
		if strings.HasPrefix(dir, "internal/playground") || dir == "internal/cli" || strings.HasPrefix(dir, "test/") {
			continue
		}
		for _, path := range files {
			for _, spec := range parse(t, path, parser.ImportsOnly).Imports {
				if strings.Contains(spec.Path.Value, "internal/playground") {
					t.Errorf("%s imports %s", path, spec.Path.Value)
				}
			}
		}
	}
}

func TestNoStrayFiles(t *testing.T) {
	t.Parallel()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || path == "bin" || path == "dist" {
				return filepath.SkipDir
			}
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Size() > 1<<20 {
			t.Errorf("%s: %d bytes; nothing in the repository is larger than 1 MiB", path, info.Size())
		}
		if strings.HasSuffix(path, ".patch") || strings.HasSuffix(path, ".orig") || strings.HasSuffix(path, ".test") {
			t.Errorf("%s: a stray file", path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
