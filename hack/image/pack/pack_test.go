// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package pack

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// list is a tree's archive, one line an entry: mode, owner, name, and target or content.
func list(t *testing.T, tree *Tree) []string {
	t.Helper()
	archive, err := tree.archive()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	reader := tar.NewReader(bytes.NewReader(archive))
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return lines
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(time.Unix(0, 0)) {
			t.Errorf("%s carries a time, so the digest depends on when it was made: %s", header.Name, header.ModTime)
		}
		content, err := io.ReadAll(reader)
		if err != nil {
			t.Fatal(err)
		}
		line := header.FileInfo().Mode().String() + " " + header.Name
		if header.Uid != 0 {
			line += " (owned)"
		}
		lines = append(lines, strings.TrimSpace(line+" "+header.Linkname+string(content)))
	}
}

func TestATreeIsSortedAndHoldsTheFoldersAboveItsFiles(t *testing.T) {
	t.Parallel()
	tree := &Tree{}
	tree.Dir("/tmp", 0o777|fs.ModeSticky)
	tree.Link("/bin", "usr/bin")
	tree.Write("/etc/a/b", "text")
	tree.Write("/bin/below-a-link", "moves to where the link leads")
	tree.Dir("/home/me", 0o700)
	tree.Own("/home/me", 7, 7)
	want := []string{
		"Lrwxrwxrwx bin usr/bin",
		"drwxr-xr-x etc/",
		"drwxr-xr-x etc/a/",
		"-rw-r--r-- etc/a/b text",
		"drwxr-xr-x home/",
		"drwx------ home/me/ (owned)",
		"dtrwxrwxrwx tmp/",
		"drwxr-xr-x usr/",
		"drwxr-xr-x usr/bin/",
		"-rw-r--r-- usr/bin/below-a-link moves to where the link leads",
	}
	if diff := cmp.Diff(want, list(t, tree)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheDigestDependsOnContentAlone(t *testing.T) {
	t.Parallel()
	digest := func(content string, when time.Time, mode fs.FileMode) string {
		file := filepath.Join(t.TempDir(), "program")
		if err := os.WriteFile(file, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(file, when, when); err != nil {
			t.Fatal(err)
		}
		tree := &Tree{}
		tree.Copy("/program", file)
		layer, err := tree.Layer()
		if err != nil {
			t.Fatal(err)
		}
		image, err := Image(v1.Config{User: "1"}, layer)
		if err != nil {
			t.Fatal(err)
		}
		hash, err := image.Digest()
		if err != nil {
			t.Fatal(err)
		}
		return hash.String()
	}
	first := digest("a", time.Unix(1, 0), 0o755)
	if again := digest("a", time.Unix(2e9, 0), 0o700); again != first {
		t.Errorf("the same content at another time: %s and %s", first, again)
	}
	if other := digest("b", time.Unix(1, 0), 0o755); other == first {
		t.Error("other content, and the same digest")
	}
	if other := digest("a", time.Unix(1, 0), 0o644); other == first {
		t.Error("no longer executable, and the same digest")
	}
}

func TestFaultsAreGathered(t *testing.T) {
	t.Parallel()
	tree := &Tree{}
	tree.Copy("/a", "/nowhere/at/all")
	tree.Write("relative", "")
	tree.Own("/b", 1, 1)
	tree.Program("/c", "/etc/passwd")
	tree.Link("/loop", "loop")
	tree.Write("/loop/file", "")
	_, err := tree.Layer()
	for _, want := range []string{"/nowhere/at/all", "relative", "/b", "/etc/passwd", "/loop/file"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want a fault about %s in: %v", want, err)
		}
	}
}

func TestMissingNamesEachPackageOnce(t *testing.T) {
	t.Parallel()
	err := Missing(Need{"/nowhere/a", "pack-a"}, Need{"/nowhere/b", "pack-a"}, Need{"/", "here"}, Need{"/nowhere/c", "pack-c"})
	const want = "missing: /nowhere/a /nowhere/b /nowhere/c: apt-get install pack-a pack-c"
	if err == nil || err.Error() != want {
		t.Errorf("want %q, got %v", want, err)
	}
	if err := Missing(Need{"/", "here"}); err != nil {
		t.Error(err)
	}
}
