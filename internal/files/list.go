// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
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

// listing is what the paths led to when they were last followed.
type listing struct {
	// files are those to read.
	files map[string]struct{}
	// dirs are the directories whose manifests are read, and given the files that the paths name; each with the first path
	// that leads to it, by index.
	dirs, given map[string]int
	// links are the symbolic links on the way to files.
	links []string
	// bad are the directories that cannot be listed, and the paths that are gone.
	bad map[string]mesh.Finding
	// missing are the given paths that are gone, and what cannot be listed; what they held stays.
	missing []string
}

// keeps says whether a file stays though it is not listed, for all of a path that was given is gone, or a directory on the way to it cannot be read.
func (l *listing) keeps(name string) bool {
	return slices.ContainsFunc(l.missing, func(path string) bool {
		rest, under := strings.CutPrefix(name, path)
		return under && (rest == "" || rest[0] == filepath.Separator)
	})
}

// top is the first path that leads to a file, by index.
func (l *listing) top(name string) int {
	top := math.MaxInt
	if at, ok := l.given[name]; ok {
		top = at
	}
	if at, ok := l.dirs[filepath.Dir(name)]; ok {
		top = min(top, at)
	}
	return top
}

// relist follows the paths anew and returns the names of all files to look at: those there are, and those there were.
func (s *Source) relist() []string {
	last := s.listing
	s.listing = listing{files: map[string]struct{}{}, dirs: map[string]int{}, given: map[string]int{}, bad: map[string]mesh.Finding{}}
	for i, path := range slices.Backward(s.options.Paths) {
		if path == stdinName {
			s.listing.files[stdinFile] = struct{}{}
			s.listing.given[stdinFile] = i
			continue
		}
		path = filepath.Clean(path)
		s.listing.given[path] = i
		if firstLink(path) != "" {
			s.listing.links = append(s.listing.links, path)
		}
		s.walk(path, i)
	}
	for _, bad := range []map[string]mesh.Finding{last.bad, s.listing.bad} {
		for name := range bad {
			s.fresh[name] = struct{}{}
		}
	}
	names := slices.Collect(maps.Keys(s.listing.files))
	for name := range s.files {
		if _, listed := s.listing.files[name]; !listed {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, compareNames)
	return names
}

// walk lists a file, or the manifests of a directory, that a path names.
func (s *Source) walk(path string, top int) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.lost(path)
	case err != nil:
		s.bad(path, err)
	case info.IsDir():
		s.walkDir(path, top)
	default:
		s.listing.files[path] = struct{}{}
	}
}

func (s *Source) walkDir(path string, top int) {
	s.listing.dirs[path] = top
	entries, err := os.ReadDir(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.bad(path, err)
		return
	}
	for _, entry := range entries {
		inner := filepath.Join(path, entry.Name())
		switch {
		case isHidden(inner):
		case entry.IsDir():
			if s.options.Recursive {
				s.walkDir(inner, top)
			}
		case entry.Type()&os.ModeSymlink != 0:
			s.listing.links = append(s.listing.links, inner)
			if isManifest(inner) {
				s.walkLink(inner)
			}
		case isManifest(inner):
			s.listing.files[inner] = struct{}{}
		}
	}
}

// walkLink lists a link that leads to a file. One that leads to a directory is not followed into the depth, for it may lead
// in circles; one that leads nowhere is nothing.
func (s *Source) walkLink(path string) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		s.bad(path, err)
	case !info.IsDir():
		s.listing.files[path] = struct{}{}
	}
}

// lost takes note of a path that was given and is gone. Whoever takes a whole path away more likely moves it, or has yet to
// mount it, than wants the mesh to end.
func (s *Source) lost(path string) {
	s.listing.missing = append(s.listing.missing, path)
	s.listing.bad[path] = mesh.Finding{
		Severity: mesh.SeverityError,
		Reason:   mesh.ReasonUnreadable,
		Object:   mesh.Source{File: path},
		Message:  "the path is gone; what it held stays in force",
		Mend:     "put the path back; to take objects away, remove them from it and leave the file or the directory",
	}
}

// bad takes note of what cannot be listed.
func (s *Source) bad(dir string, err error) {
	s.listing.missing = append(s.listing.missing, dir)
	s.listing.bad[dir] = mesh.Finding{
		Severity: mesh.SeverityError,
		Reason:   mesh.ReasonUnreadable,
		Object:   mesh.Source{File: dir},
		Message:  "the directory cannot be read, and what it held stays in force: " + err.Error(),
		Mend:     "make the directory readable",
	}
}

// reach is how much a change of a name may matter.
type reach int

const (
	// reachLinks: only where a link leads there.
	reachLinks reach = iota
	// reachFile: the file of that name.
	reachFile
	// reachAll: anything.
	reachAll
)

// reach says what may have changed with a name, and lists a manifest that is new.
func (s *Source) reach(name string) reach {
	l := &s.listing
	_, given := l.given[name]
	if _, dir := l.dirs[name]; dir || l.keeps(name) {
		return reachAll
	}
	ours := l.mayHold(name)
	if !ours && len(l.links) == 0 {
		return reachLinks
	}
	info, err := os.Lstat(name)
	if err != nil {
		return l.reachGone(name)
	}
	if info.Mode()&os.ModeSymlink != 0 {
		return reachAll
	}
	if info.IsDir() {
		// A directory inside is another matter, unless it stands where a manifest or what a link leads to stood.
		if _, listed := l.files[name]; listed || given || s.options.Recursive || len(l.links) > 0 {
			return reachAll
		}
		return reachLinks
	}
	if given || ours && isManifest(name) {
		l.files[name] = struct{}{}
		return reachFile
	}
	return reachLinks
}

// mayHold says whether a name is one that may be read: one given, or a visible one in a directory that is read.
func (l *listing) mayHold(name string) bool {
	if _, given := l.given[name]; given {
		return true
	}
	_, inside := l.dirs[filepath.Dir(name)]
	return inside && !isHidden(name)
}

// reachGone says what may have changed where a name is gone.
func (l *listing) reachGone(name string) reach {
	if _, given := l.given[name]; given {
		return reachAll
	}
	if _, listed := l.files[name]; listed {
		return reachFile
	}
	return reachLinks
}

// isHidden says whether a name is one of those that are not read: editors' copies, and the inner workings of a mounted
// ConfigMap.
func isHidden(name string) bool { return strings.HasPrefix(filepath.Base(name), ".") }

func isManifest(name string) bool {
	return slices.Contains([]string{".yaml", ".yml", ".json"}, strings.ToLower(filepath.Ext(name)))
}

// errUnchanged says that a file is as it was.
var errUnchanged = errors.New("unchanged")

// content reads a file; the error is errUnchanged where it is as it was when old was read.
func (s *Source) content(name string, old *file) (stamp, []byte, error) {
	if name == stdinFile {
		if old != nil {
			return stamp{}, nil, errUnchanged
		}
		return stamp{size: int64(len(s.stdin))}, s.stdin, nil
	}
	info, err := os.Stat(name)
	if err != nil {
		return stamp{}, nil, err
	}
	now := stampOf(info)
	switch {
	case old != nil && old.bad == nil && !old.stale && old.stamp == now:
		return now, nil, errUnchanged
	case !info.Mode().IsRegular():
		return now, nil, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > maxFile:
		return now, nil, fmt.Errorf("%s has %d bytes, more than the %d that are read", name, info.Size(), maxFile)
	}
	text, err := readFile(name)
	return now, text, err
}

func stampOf(info os.FileInfo) stamp {
	out := stamp{size: info.Size(), changed: info.ModTime()}
	if sys, ok := info.Sys().(*syscall.Stat_t); ok {
		out.inode, out.device = sys.Ino, sys.Dev
	}
	return out
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
