// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
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

// sweepTime is how often everything is looked at though no event asked for it: not every file system tells of each change,
// and not each place from which one may come is watched. It is done in pieces, so that no change waits for it.
const (
	sweepTime  = time.Minute
	sweepPause = 10 * time.Millisecond
	sweepPiece = 100
)

// watcher tells when something under the source's paths may have changed.
type watcher struct {
	source *Source
	notify *fsnotify.Watcher
	// dirs are the directories that are watched, as they were when the watch began.
	dirs map[string]os.FileInfo
	// links are the links on the way to files.
	links map[string]struct{}
	// twins is set where two of them are one, so that events name files by one of their two names.
	twins bool
	// names are the files to look at, unless all are.
	names map[string]struct{}
	all   bool
	// since is when that was noticed first; zero for not at all.
	since time.Time
	// sweep is what is left of looking at everything.
	sweep []string
}

func newWatcher(s *Source) (*watcher, error) {
	notify, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watch manifests: %w", err)
	}
	return &watcher{source: s, notify: notify, dirs: map[string]os.FileInfo{}, names: map[string]struct{}{}}, nil
}

func (w *watcher) close() {
	if err := w.notify.Close(); err != nil {
		w.source.options.Logger.Warn("cannot end the watch of manifests", "error", err)
	}
}

// run follows the file system. The first event of a burst is acted on at once, those that follow are taken together.
func (w *watcher) run(ctx context.Context, apply func(mesh.Changes)) error {
	clock := w.source.options.Clock
	// These are the ends of waiting for more events, for a doubtful file, and for the next look at everything.
	var burst, again <-chan time.Time
	sweep := clock.After(sweepTime)
	for {
		select {
		case <-ctx.Done():
			return nil
		case event, ok := <-w.notify.Events:
			if !ok {
				return nil
			}
			w.note(event)
		case err, ok := <-w.notify.Errors:
			if !ok {
				return nil
			}
			// Events may have been lost, so everything is looked at.
			w.source.options.Logger.Warn("trouble with the watch of manifests", "error", err)
			w.want(true)
		case <-burst:
			burst = nil
		case <-again:
			again = nil
			w.want(false, slices.Collect(maps.Keys(w.source.doubts))...)
		case <-sweep:
			sweep = clock.After(w.sweepOn())
		}
		if burst != nil || w.since.IsZero() {
			continue
		}
		burst = w.act(apply)
		if wait, doubtful := w.source.due(); doubtful && again == nil {
			again = clock.After(wait)
		}
	}
}

// want has files looked at, or all of them.
func (w *watcher) want(all bool, names ...string) {
	if w.since.IsZero() {
		w.since = w.source.options.Clock.Now()
	}
	w.all = w.all || all
	for _, name := range names {
		w.names[name] = struct{}{}
	}
}

// note wants what an event may have changed.
func (w *watcher) note(event fsnotify.Event) {
	if event.Name == "" {
		return
	}
	name := filepath.Clean(event.Name)
	reach := w.source.reach(name)
	_, dir := w.dirs[name]
	_, link := w.links[name]
	if dir || link || w.twins || reach == reachAll {
		w.want(true)
		return
	}
	if reach == reachFile {
		if f := w.source.files[name]; f != nil && event.Op != fsnotify.Chmod {
			f.stale = true
		}
		w.want(false, name)
	}
	// A link may lead to what changed.
	if links := w.source.listing.links; len(links) > 0 {
		w.want(false, links...)
	}
}

// sweepOn wants the next piece of everything and returns when to go on.
func (w *watcher) sweepOn() time.Duration {
	if len(w.sweep) == 0 {
		w.cover()
		w.sweep = w.source.relist()
	}
	piece := w.sweep[:min(len(w.sweep), sweepPiece)]
	w.sweep = w.sweep[len(piece):]
	w.want(false, piece...)
	if len(w.sweep) == 0 {
		return sweepTime
	}
	return sweepPause
}

// act looks at what is wanted and hands over what changed. What it returns ends the time for which events are gathered:
// after a change, and after a look that took long and gave nothing, such as at a large file that is being written.
func (w *watcher) act(apply func(mesh.Changes)) (burst <-chan time.Time) {
	clock := w.source.options.Clock
	start := clock.Now()
	names := slices.Sorted(maps.Keys(w.names))
	if w.all {
		w.cover()
		names = w.source.relist()
		w.sweep = nil
	}
	changes := w.source.look(names, w.since)
	w.names, w.all, w.since = map[string]struct{}{}, false, time.Time{}
	if changes.Empty() {
		if took := clock.Now().Sub(start); took >= time.Millisecond {
			return clock.After(min(took, burstTime))
		}
		return nil
	}
	burst = clock.After(burstTime)
	w.source.options.Logger.Info("manifests changed", "set", len(changes.Set), "removed", len(changes.Removed))
	apply(changes)
	return burst
}

// cover watches each directory in which a change may matter: those given, those inside them where they are read too, the
// parent of each path, in which it may be replaced, and the parents of links on the way to a file and of what they lead to.
//
// A directory may have got another one inside before its watch began, so it is done again until there is none.
func (w *watcher) cover() {
	for w.coverNew() {
	}
}

// coverNew watches the directories that there are and says whether one of them is new.
func (w *watcher) coverNew() (added bool) {
	w.links = map[string]struct{}{}
	want := map[string]os.FileInfo{}
	for _, path := range w.source.options.Paths {
		if path == stdinName {
			continue
		}
		path = filepath.Clean(path)
		w.addLinks(want, path)
		info, err := os.Stat(path)
		if err == nil && info.IsDir() {
			w.addDir(want, path)
			w.addInner(want, path)
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
		added = true
	}
	w.findTwins()
	return added
}

func (w *watcher) findTwins() {
	w.twins = false
	seen := map[stamp]struct{}{}
	for _, info := range w.dirs {
		id := stampOf(info)
		id.size, id.changed = 0, time.Time{}
		if _, had := seen[id]; had {
			w.twins = true
		}
		seen[id] = struct{}{}
	}
}

func (w *watcher) addDir(dirs map[string]os.FileInfo, dir string) {
	if info, err := os.Stat(dir); err == nil && info.IsDir() {
		dirs[dir] = info
	}
}

// addInner adds what matters to the entries of a directory.
func (w *watcher) addInner(dirs map[string]os.FileInfo, path string) {
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
			w.addLinks(dirs, inner)
		case entry.IsDir() && w.source.options.Recursive:
			w.addDir(dirs, inner)
			w.addInner(dirs, inner)
		}
	}
}

// maxLinks bounds the links on the way to a file, as the kernel does.
const maxLinks = 40

// addLinks adds the parent of each link on the way to path, and that of what they lead to.
func (w *watcher) addLinks(dirs map[string]os.FileInfo, path string) {
	for range maxLinks {
		link := firstLink(path)
		if link == "" {
			break
		}
		w.links[link] = struct{}{}
		w.addDir(dirs, filepath.Dir(link))
		target, err := os.Readlink(link)
		if err != nil {
			return
		}
		if !filepath.IsAbs(target) {
			target = filepath.Join(filepath.Dir(link), target)
		}
		path = filepath.Join(target, strings.TrimPrefix(path, link))
	}
	w.addDir(dirs, filepath.Dir(path))
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
