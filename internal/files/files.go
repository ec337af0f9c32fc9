// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package files is the source of objects that reads manifests from disk: files, directories and standard input, watched
// for changes. The command line starts it; it hands the model what changed.
package files

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Options say what to read.
type Options struct {
	// Paths are files and directories, in the order in which they are read; "-" is Stdin. Of an object that is given
	// twice the last one holds.
	Paths []string
	// Recursive reads the directories inside directories too.
	Recursive bool
	// Namespace is that of namespaced objects that name none; empty is "default".
	Namespace string
	// Stdin is read once, for the path "-".
	Stdin io.Reader
	// Decode are the choices of decoding.
	Decode decode.Options
	// Clock tells when a change was seen, and waits for a writer to finish; nil is the machine's.
	Clock clock.Clock
	// Logger is told of changes and of trouble with watching; nil logs nothing.
	Logger *slog.Logger
}

// Summary counts what was read.
type Summary struct {
	Files   int
	Objects int
	// Skipped counts objects of kinds that mean nothing to the mesh.
	Skipped map[string]int
}

// Source reads manifests and keeps what they mean. It is not safe for concurrent use.
type Source struct {
	options Options
	parser  *parser
	decoder *decode.Decoder
	stdin   []byte
	files   map[string]*file
	// order is the files in the order in which they are read.
	order []string
	// holders are the files that hold an object.
	holders map[decode.ID]map[string]struct{}
	// reported are the files whose findings were last reported as not empty.
	reported map[string][]mesh.Finding
	// doubts are the files whose newest state is not believed yet.
	doubts map[string]doubt
	synced chan struct{}
}

// doubt is a state of a file that takes objects away, and when it was first seen.
type doubt struct {
	stamp stamp
	since time.Time
}

// file is one file as it was last read.
type file struct {
	stamp stamp
	// bad is why the file cannot be read at all.
	bad     error
	entries []entry
	parsed  *parsed
}

// New returns a source that has read nothing yet.
func New(options Options) *Source {
	if options.Namespace == "" {
		options.Namespace = "default"
	}
	if options.Clock == nil {
		options.Clock = clock.Real{}
	}
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	return &Source{
		options:  options,
		parser:   &parser{kinds: newKinds(), types: newTypeCache(), namespace: options.Namespace},
		decoder:  decode.New(options.Decode),
		files:    map[string]*file{},
		holders:  map[decode.ID]map[string]struct{}{},
		reported: map[string][]mesh.Finding{},
		doubts:   map[string]doubt{},
		synced:   make(chan struct{}),
	}
}

// Load reads everything once. A path that does not exist is an error; what is wrong inside files is a finding.
func (s *Source) Load() (mesh.Changes, error) {
	for _, path := range s.options.Paths {
		if path == stdinName {
			continue
		}
		if _, err := os.Stat(path); err != nil {
			return mesh.Changes{}, fmt.Errorf("manifests: %w", err)
		}
	}
	if err := s.readStdin(); err != nil {
		return mesh.Changes{}, err
	}
	changes, _ := s.refresh(s.options.Clock.Now())
	return changes, nil
}

// Synced is closed once the first changes of Run have been applied.
func (s *Source) Synced() <-chan struct{} { return s.synced }

// Run reads everything, hands it to apply, and then hands over every change until ctx ends. apply is never called twice at
// once; the first call comes even where nothing was found.
func (s *Source) Run(ctx context.Context, apply func(mesh.Changes)) error {
	w, err := newWatcher(s)
	if err != nil {
		return err
	}
	defer w.close()
	w.cover()
	changes, err := s.Load()
	if err != nil {
		return err
	}
	apply(changes)
	close(s.synced)
	return w.run(ctx, apply)
}

// Summary counts what was read at the last time.
func (s *Source) Summary() Summary {
	out := Summary{Files: len(s.order), Objects: len(s.holders), Skipped: map[string]int{}}
	for _, f := range s.files {
		for kind, n := range f.parsed.skipped {
			out.Skipped[kind] += n
		}
	}
	return out
}

// refresh reads the files that changed; since is when that was noticed. A change that takes objects away is believed only
// once it has stood for a while, since the file may be half written; again says that there is such a one.
func (s *Source) refresh(since time.Time) (changes mesh.Changes, again bool) {
	dirty := map[decode.ID]struct{}{}
	order, listing := s.list()
	listed := make(map[string]struct{}, len(order))
	for _, name := range order {
		listed[name] = struct{}{}
		if s.read(name, dirty) {
			again = true
		}
	}
	last := s.order
	s.order = order
	for i, name := range last {
		if _, still := listed[name]; still {
			continue
		}
		if s.doubt(name, stamp{}) {
			again = true
			s.keepPlace(last[:i], name)
			continue
		}
		s.forgetEntries(s.files[name], name, dirty)
		delete(s.files, name)
	}
	s.settle(dirty)
	changes = s.decoder.Flush()
	s.report(&changes, listing)
	if !changes.Empty() {
		changes.Since = since
	}
	return changes, again
}

// doubt says whether a state of a file that takes objects away is too young to be believed.
func (s *Source) doubt(name string, now stamp) bool {
	seen := s.options.Clock.Now()
	first, had := s.doubts[name]
	if !had || first.stamp != now {
		s.doubts[name] = doubt{stamp: now, since: seen}
		return true
	}
	if seen.Sub(first.since) < settleTime {
		return true
	}
	delete(s.doubts, name)
	return false
}

// keepPlace puts a file that is not listed any more behind those that it stood behind.
func (s *Source) keepPlace(before []string, name string) {
	for _, earlier := range slices.Backward(before) {
		if at := slices.Index(s.order, earlier); at >= 0 {
			s.order = slices.Insert(s.order, at+1, name)
			return
		}
	}
	s.order = slices.Insert(s.order, 0, name)
}

// read reads a file if it changed and says whether it has to be read again.
func (s *Source) read(name string, dirty map[decode.ID]struct{}) (again bool) {
	old := s.files[name]
	now, text, err := s.content(name, old)
	if err == nil && old != nil && old.bad == nil && now == old.stamp {
		delete(s.doubts, name)
		return false
	}
	if err != nil && old != nil && old.bad != nil && err.Error() == old.bad.Error() {
		return false
	}
	next := &file{stamp: now, bad: err, parsed: &parsed{}}
	if err != nil {
		next.parsed.broken = true
		next.parsed.add(name, mesh.Source{}, fault{
			severity: mesh.SeverityError,
			reason:   mesh.ReasonUnreadable,
			message:  "the file cannot be read: " + err.Error(),
			mend:     "make the file readable; until then what it held before stays in force",
		})
	} else {
		next.parsed = s.parser.parse(name, text)
	}
	next.merge(old)
	if old != nil && (next.parsed.broken || next.lacks(old)) && s.doubt(name, now) {
		return true
	}
	delete(s.doubts, name)
	s.replace(name, old, next, dirty)
	return false
}

// merge takes over from the file's last state what the new one cannot say.
func (f *file) merge(old *file) {
	if f.parsed.broken && old != nil {
		f.entries = old.entries
		return
	}
	for _, e := range f.parsed.entries {
		if !e.refused {
			f.entries = append(f.entries, e)
			continue
		}
		if old == nil {
			continue
		}
		if i := slices.IndexFunc(old.entries, func(o entry) bool { return o.id == e.id }); i >= 0 {
			f.entries = append(f.entries, old.entries[i])
		}
	}
}

// lacks says whether an object of the old state is gone.
func (f *file) lacks(old *file) bool {
	ids := make(map[decode.ID]struct{}, len(f.entries))
	for _, e := range f.entries {
		ids[e.id] = struct{}{}
	}
	return slices.ContainsFunc(old.entries, func(e entry) bool {
		_, ok := ids[e.id]
		return !ok
	})
}

func (s *Source) replace(name string, old, next *file, dirty map[decode.ID]struct{}) {
	s.forgetEntries(old, name, dirty)
	s.files[name] = next
	for _, e := range next.entries {
		if s.holders[e.id] == nil {
			s.holders[e.id] = map[string]struct{}{}
		}
		s.holders[e.id][name] = struct{}{}
		dirty[e.id] = struct{}{}
	}
}

func (s *Source) forgetEntries(old *file, name string, dirty map[decode.ID]struct{}) {
	if old == nil {
		return
	}
	for _, e := range old.entries {
		dirty[e.id] = struct{}{}
		delete(s.holders[e.id], name)
		if len(s.holders[e.id]) == 0 {
			delete(s.holders, e.id)
		}
	}
}

// settle gives the decoder the last of each object that may have changed.
func (s *Source) settle(dirty map[decode.ID]struct{}) {
	rank := make(map[string]int, len(s.order))
	for i, name := range s.order {
		rank[name] = i
	}
	for id := range dirty {
		names := slices.SortedFunc(maps.Keys(s.holders[id]), func(a, b string) int { return rank[a] - rank[b] })
		var all []entry
		for _, name := range names {
			for _, e := range s.files[name].entries {
				if e.id == id {
					all = append(all, e)
				}
			}
		}
		if len(all) == 0 {
			s.decoder.Delete(id)
			continue
		}
		last := all[len(all)-1].object
		for _, e := range all[:len(all)-1] {
			last.Findings = append(slices.Clone(last.Findings), twice(id, e.object, last))
		}
		s.decoder.Set(last)
	}
}

// twice says that an object is given in two places.
func twice(id decode.ID, earlier, later decode.Object) mesh.Finding {
	return mesh.Finding{
		Severity: mesh.SeverityWarning,
		Reason:   mesh.ReasonDuplicate,
		Object: mesh.Source{
			APIVersion: later.APIVersion, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name, File: later.File, Line: later.Line,
		},
		Field: "metadata.name",
		Value: id.Name,
		Message: fmt.Sprintf("this object is given in %s:%d and again in %s:%d; the later one holds",
			earlier.File, earlier.Line, later.File, later.Line),
		Mend: "remove one of the two",
	}
}

// report adds the findings of files to changes where they differ from the last time. The key of a file's findings has the
// kind File and the file's name; each finding itself names the object that it is about.
func (s *Source) report(changes *mesh.Changes, listing map[string]mesh.Finding) {
	now := map[string][]mesh.Finding{}
	for name, f := range s.files {
		if len(f.parsed.findings) > 0 {
			now[name] = mesh.SortFindings(slices.Clone(f.parsed.findings))
		}
	}
	for name, finding := range listing {
		now[name] = append(now[name], finding)
	}
	set := func(name string, list []mesh.Finding) {
		if changes.Findings == nil {
			changes.Findings = map[mesh.Source][]mesh.Finding{}
		}
		changes.Findings[mesh.Source{Kind: kindFile, Name: name}] = list
	}
	for name, list := range now {
		if !slices.Equal(list, s.reported[name]) {
			set(name, list)
		}
	}
	for name := range s.reported {
		if _, still := now[name]; !still {
			set(name, nil)
		}
	}
	s.reported = now
}

// kindFile is the kind of the source under which the findings of a file as such are kept.
const kindFile = "File"

// stamp tells one state of a file from another without reading it.
type stamp struct {
	size    int64
	changed time.Time
	inode   uint64
	device  uint64
}
