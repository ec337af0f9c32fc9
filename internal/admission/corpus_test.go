// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

const corpus = "../../test/compat/testdata/corpus"

// TestEveryExampleIsAdmitted holds that whatever AWS's public examples create is admitted and converts without loss.
func TestEveryExampleIsAdmitted(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	err := filepath.WalkDir(corpus, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.Contains(d.Name(), ".y") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		documents := utilyaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(text)))
		for {
			document, err := documents.Read()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			raw, err := yaml.YAMLToJSON(document)
			if err != nil {
				continue // a template, which the shell fills in first
			}
			var meta metav1.PartialObjectMetadata
			if json.Unmarshal(raw, &meta) != nil || !strings.HasPrefix(meta.APIVersion, v1beta2.Group+"/") || !slices.Contains(kinds(), meta.Kind) {
				continue
			}
			seen[meta.Kind]++
			admitted(t, path, meta, raw)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range kinds() {
		if seen[kind] == 0 && kind != kindBackendGroup {
			t.Errorf("no example has a %s: files are missing", kind)
		}
	}
	t.Logf("examples: %v", seen)
}

func admitted(t *testing.T, path string, meta metav1.PartialObjectMetadata, raw []byte) {
	t.Helper()
	upgraded := converted(t, raw)
	s, err := read(meta.Kind, upgraded)
	if err != nil {
		// A variable of a template stands where a number belongs.
		if !bytes.ContainsAny(raw, "$") {
			t.Errorf("%s: %s %s: %v", path, meta.Kind, meta.Name, err)
		}
		return
	}
	for _, f := range Faults(s.object, meta.APIVersion, "") {
		if line := sentence(f); f.Severity == mesh.SeverityError && !strings.Contains(line, "$") {
			t.Errorf("%s: %s %s is refused: %s", path, meta.Kind, meta.Name, line)
		}
	}
	switch meta.Kind {
	case kindMesh, kindVirtualNode, kindVirtualService:
		there, err := Convert(upgraded, old)
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		again, err := read(meta.Kind, converted(t, there))
		if err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		if diff := cmp.Diff(s.object, again.object); diff != "" {
			t.Errorf("%s: %s %s is not the same after the way through v1beta1 (-before +after):\n%s", path, meta.Kind, meta.Name, diff)
		}
	}
}
