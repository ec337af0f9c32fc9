// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// settleTime is how long a state that takes objects away must stand before it is believed: an editor may be between
// emptying a file and writing it.
const settleTime = 100 * time.Millisecond

// burstTime is how long events are gathered after one was acted on.
const burstTime = 20 * time.Millisecond

// watcher tells when something under the source's paths may have changed.
type watcher struct {
	source *Source
	notify *fsnotify.Watcher
	// dirs are the directories that are watched, as they were when the watch began.
	dirs map[string]os.FileInfo
}

func newWatcher(s *Source) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch manifests: %w", err)
	}
	return &watcher{source: s, notify: notify, dirs: map[string]os.FileInfo{}}, nil
}

func (w *watcher) close() {
	if err := w.notify.Close(); err != nil {
		w.source.options.Logger.Warn("cannot end the watch of manifests", "error", err)
	}
}

// run follows the file system. The first event of a burst is acted on at once, those that follow are taken together.
func (w *watcher) run(ctx context.Context, apply func(mesh.Changes)) error {
	clock := w.source.options.Clock
	var (
		// since is when the oldest event came that was not acted on; zero for none.
		since time.Time
		// burst and again are the ends of waiting for more events, and for a doubtful file.
		burst, again <-chan time.Time
	)
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-w.notify.Events:
			if !ok {
				return nil
			}
		case err, ok := <-w.notify.Errors:
			if !ok {
				return nil
			}
			// Events may have been lost, so everything is looked at.
			w.source.options.Logger.Warn("trouble with the watch of manifests", "error", err)
		case <-burst:
			burst = nil
			if since.IsZero() {
				continue
			}
		case <-again:
			again = nil
		}
		if since.IsZero() {
			since = clock.Now()
		}
		if burst != nil {
			continue
		}
		w.cover()
		changes, more := w.source.refresh(since)
		since = time.Time{}
		burst = clock.After(burstTime)
		again = nil
		if more {
			again = clock.After(settleTime)
		}
		if !changes.Empty() {
			w.source.options.Logger.Info("manifests changed", "set", len(changes.Set), "removed", len(changes.Removed))
			apply(changes)
		}
	}
}

// cover watches each directory in which a change may matter: those given, those inside them where they are read too, the
// parent of each path, in which it may be replaced, and the parents of links on the way to a file and of what they lead to.
func (w *watcher) cover() {
	want := map[string]os.FileInfo{}
	for _, path := range w.source.options.Paths {
		if path == stdinName {
			continue
		}
		path = filepath.Clean(path)
		w.wantLinks(want, path)
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			w.want(want, path)
			w.wantInner(want, path)
		}
	}
	for dir, old := range w.dirs {
		if now, still := want[dir]; !still || !os.SameFile(old, now) {
			// The directory is gone or another one has taken its place; a watch of what is gone has ended by itself.
			_ = w.notify.Remove(dir)
			delete(w.dirs, dir)
		}
	}
	for dir, info := range want {
		if _, had := w.dirs[dir]; had {
			continue
		}
		if err := w.notify.Add(dir); err != nil {
			w.source.options.Logger.Warn("cannot watch a directory; changes in it go unseen", "directory", dir, "error", err)
			continue
		}
		w.dirs[dir] = info
	}
}

func (w *watcher) want(dirs map[string]os.FileInfo, dir string) {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		dirs[dir] = info
	}
}

// wantInner adds what matters to the entries of a directory.
func (w *watcher) wantInner(dirs map[string]os.FileInfo, path string) {
	entries, err := os.ReadDir(path)
	if err != nil {
		return
	}
	for _, entry := range entries {
		if strings.HasPrefix(entry.Name(), ".") {
			continue
		}
		inner := filepath.Join(path, entry.Name())
		switch {
		case entry.Type()&os.ModeSymlink != 0 && isManifest(inner):
			w.wantLinks(dirs, inner)
		case entry.IsDir() && w.source.options.Recursive:
			w.want(dirs, inner)
			w.wantInner(dirs, inner)
		}
	}
}

// maxLinks bounds the links on the way to a file, as the kernel does.
const maxLinks = 40

// wantLinks adds the parent of each link on the way to path, and that of what they lead to.
func (w *watcher) wantLinks(dirs map[string]os.FileInfo, path string) {
	for range maxLinks {
		link := firstLink(path)
		if link == "" {
			break
		}
		w.want(dirs, filepath.Dir(link))
		target, err := os.Readlink(link)
		if err != nil {
			return
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		path = filepath.Join(target, strings.TrimPrefix(path, link))
	}
	w.want(dirs, filepath.Dir(path))
}

// firstLink is the shortest beginning of a clean path that is a link, or empty.
func firstLink(path string) string {
	for end := 1; end <= len(path); end++ {
		if end < len(path) && path[end] != filepath.Separator {
			continue
		}
		if info, err := os.Lstat(path[:end]); err == nil && info.Mode()&os.ModeSymlink != 0 {
			return path[:end]
		}
	}
	return ""
}
