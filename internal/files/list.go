// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// stdinName is the path that stands for standard input, and stdinFile the name under which findings speak of it.
const (
	stdinName = "-"
	stdinFile = "(stdin)"
)

// maxFile bounds a file, in bytes.
const maxFile = 256 << 20

// list names the files to read, each once, and the directories that cannot be listed.
func (s *Source) list() ([]string, map[string]mesh.Finding) {
	var order []string
	had := map[string]struct{}{}
	bad := map[string]mesh.Finding{}
	add := func(name string) {
		if _, ok := had[name]; !ok {
			had[name] = struct{}{}
			order = append(order, name)
		}
	}
	for _, path := range s.options.Paths {
		if path == stdinName {
			add(stdinFile)
			continue
		}
		s.walk(filepath.Clean(path), true, add, func(dir string, err error) {
			bad[dir] = mesh.Finding{
				Severity: mesh.SeverityError,
				Reason:   mesh.ReasonUnreadable,
				Object:   mesh.Source{File: dir},
				Message:  "the directory cannot be read: " + err.Error(),
				Mend:     "make the directory readable",
			}
		})
	}
	return order, bad
}

// walk adds a file, or the manifests of a directory in name order. One that is gone is nothing.
func (s *Source) walk(path string, top bool, add func(string), bad func(string, error)) {
	info, err := os.Stat(path)
	if err != nil {
		if !os.IsNotExist(err) {
			bad(path, err)
		}
		return
	}
	if !info.IsDir() {
		if top || isManifest(path) {
			add(path)
		}
		return
	}
	if !top && !s.options.Recursive {
		return
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		bad(path, err)
		return
	}
	for _, entry := range entries {
		// Hidden names are editors' copies, and the inner workings of a mounted ConfigMap. A link to a directory is not
		// followed into the depth, for it may lead in circles.
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		inner := filepath.Join(path, entry.Name())
		if entry.Type()&os.ModeSymlink != 0 {
			if target, err := os.Stat(inner); err == nil && target.IsDir() {
				continue
			}
		}
		s.walk(inner, false, add, bad)
	}
}

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name)))
}

// content reads a file, unless it is as it was when old was read.
func (s *Source) content(name string, old *file) (stamp, []byte, error) {
	if name == stdinFile {
		return stamp{size: int64(len(s.stdin))}, s.stdin, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return stamp{}, nil, err
	}
	now := stamp{size: info.Size(), changed: info.ModTime()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		now.inode, now.device = sys.Ino, sys.Dev
	}
	switch {
	case old != nil && old.bad == nil && old.stamp == now:
		return now, nil, nil
	case !info.Mode().IsRegular():
		return now, nil, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > maxFile:
		return now, nil, fmt.Errorf("%s has %d bytes, more than the %d that are read", name, info.Size(), maxFile)
	}
	text, err := readFile(name)
	return now, text, err
}

// readFile reads a file that the operator named, or one in a directory that the operator named.
func readFile(name string) ([]byte, error) {
	return os.ReadFile(name) //nolint:gosec // reading any file that the operator names is what this package is for
}

func (s *Source) readStdin() error {
	if s.stdin != nil || s.options.Stdin == nil || !slices.Contains(s.options.Paths, stdinName) {
		return nil
	}
	text, err := io.ReadAll(io.LimitReader(s.options.Stdin, maxFile))
	if err != nil {
		return fmt.Errorf("manifests: read standard input: %w", err)
	}
	s.stdin = append([]byte{}, text...)
	return nil
}
