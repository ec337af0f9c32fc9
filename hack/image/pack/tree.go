// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package pack turns files of this machine into container images, with neither Docker nor root, and gives the same bytes for the same files.
// The image builder and the lab call it.
package pack

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A Tree is the files of one layer. Its zero value is empty. Paths are absolute, as a process in the image sees them; folders above a file are made as needed.
//
// Faults are kept until the layer is made, so that a tree is written down without a check at every line.
type Tree struct {
	entries map[string]entry
	faults  []error
}

// entry is one file, folder or symbolic link. Content that lies on this machine is read when the layer is made.
type entry struct {
	mode     fs.FileMode
	content  []byte
	from     string
	target   string
	uid, gid int
}

// Dir adds a folder with a mode such as 0o755 or 0o1777|fs.ModeSticky.
func (t *Tree) Dir(name string, mode fs.FileMode) { t.put(name, entry{mode: mode | fs.ModeDir}) }

// Write adds a file that all may read and only root may write.
func (t *Tree) Write(name, content string) {
	t.put(name, entry{mode: 0o644, content: []byte(content)})
}

// Link adds a symbolic link to target.
func (t *Tree) Link(name, target string) {
	t.put(name, entry{mode: fs.ModeSymlink | 0o777, target: target})
}

// Copy adds the file of this machine at from, through symbolic links. Of its mode only "executable or not" stays.
func (t *Tree) Copy(name, from string) {
	info, err := os.Stat(from)
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is not a regular file", from)
	}
	if err != nil {
		t.faults = append(t.faults, err)
		return
	}
	mode := fs.FileMode(0o644)
	if info.Mode()&0o111 != 0 {
		mode = 0o755
	}
	t.put(name, entry{mode: mode, from: from})
}

// Own gives a path that is in the tree already to a user and a group.
func (t *Tree) Own(name string, uid, gid int) {
	e, ok := t.entries[name]
	if !ok {
		t.faults = append(t.faults, fmt.Errorf("%s: cannot change the owner of a file that is not there", name))
		return
	}
	e.uid, e.gid = uid, gid
	t.entries[name] = e
}

func (t *Tree) put(name string, e entry) {
	if !path.IsAbs(name) || path.Clean(name) != name || name == "/" {
		t.faults = append(t.faults, fmt.Errorf("%q is no clean absolute path", name))
		return
	}
	name, err := t.resolve(name)
	if err != nil {
		t.faults = append(t.faults, err)
		return
	}
	if t.entries == nil {
		t.entries = map[string]entry{}
	}
	for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
		if _, ok := t.entries[dir]; !ok {
			t.entries[dir] = entry{mode: fs.ModeDir | 0o755}
		}
	}
	t.entries[name] = e
}

// resolve follows links in the folders above name, so that /lib/x lands in /usr/lib/x where /lib is a link: a layer may hold no file below a link.
func (t *Tree) resolve(name string) (string, error) {
	const most = 40 // links on one path, as in the kernel
	for range most {
		link := ""
		for dir := path.Dir(name); dir != "/"; dir = path.Dir(dir) {
			if t.entries[dir].mode&fs.ModeSymlink != 0 {
				link = dir
			}
		}
		if link == "" {
			return name, nil
		}
		target := t.entries[link].target
		if !path.IsAbs(target) {
			target = path.Join(path.Dir(link), target)
		}
		name = path.Join(target, strings.TrimPrefix(name, link))
	}
	return "", fmt.Errorf("%s: too many links", name)
}

// has says whether a file of that name is in the tree.
func (t *Tree) has(name string) bool {
	resolved, err := t.resolve(name)
	_, ok := t.entries[resolved]
	return err == nil && ok
}

// archive is the tree as a tar file: sorted, owned by root unless said otherwise, and with no times in it.
func (t *Tree) archive() ([]byte, error) {
	if err := errors.Join(t.faults...); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, name := range slices.Sorted(maps.Keys(t.entries)) {
		if err := t.entries[name].write(w, name); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return out.Bytes(), w.Close()
}

func (e entry) write(w *tar.Writer, name string) error {
	content := e.content
	if e.from != "" {
		var err error
		if content, err = os.ReadFile(filepath.Clean(e.from)); err != nil {
			return err
		}
	}
	header := &tar.Header{Name: strings.TrimPrefix(name, "/"), Mode: int64(e.mode.Perm()), Uid: e.uid, Gid: e.gid, Typeflag: tar.TypeReg, Size: int64(len(content))}
	if e.mode&fs.ModeSticky != 0 {
		header.Mode |= 0o1000
	}
	switch {
	case e.mode.IsDir():
		header.Typeflag, header.Name = tar.TypeDir, header.Name+"/"
	case e.mode&fs.ModeSymlink != 0:
		header.Typeflag, header.Linkname = tar.TypeSymlink, e.target
	}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	_, err := io.Copy(w, bytes.NewReader(content))
	return err
}
