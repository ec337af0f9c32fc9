// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/tulle-mesh/tulle/internal/decode"
)

// TestWhatADirectoryHeldStaysWhileItCannotBeRead plays the directory that cannot be read, since nothing keeps root from reading one.
func TestWhatADirectoryHeldStaysWhileItCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "mesh.yaml")
	text := "apiVersion: appmesh.k8s.aws/v1beta2\nkind: Mesh\nmetadata: {name: m}\nspec: {}\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := New(Options{Paths: []string{dir}})
	if _, err := s.Load(); err != nil {
		t.Fatal(err)
	}
	delete(s.listing.files, name)
	s.bad(dir, os.ErrPermission)
	for range 2 { // the first time would be in doubt anyway
		s.doubts[name] = doubt{}
		s.gone(name, s.files[name], map[decode.ID]struct{}{})
	}
	if s.files[name] == nil || s.Summary().Objects != 1 {
		t.Errorf("what %s held is gone: %+v", dir, s.Summary())
	}
	if f := s.listing.bad[dir]; f.Message == "" {
		t.Error("nothing says that the directory cannot be read")
	}
	other := name + ".other"
	s.listing.missing = nil
	s.doubts[name] = doubt{}
	s.gone(name, s.files[name], map[decode.ID]struct{}{})
	if s.files[name] != nil || s.listing.keeps(other) {
		t.Error("a file that is gone from a directory that can be read must go")
	}
}
