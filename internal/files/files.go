// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package files is the source of objects that reads manifests from disk: files, directories and standard input, watched
// for changes. The command line starts it; it hands the model what changed.
package files

import (
	"context"
	"fmt"
	"hash/maphash"
	"io"
	"log/slog"
	"os"
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
	// listing is what the paths led to.
	listing listing
	// holders are the places that give an object, in no order.
	holders map[decode.ID][]holding
	// reported are the files whose findings were last reported as not empty.
	reported map[string][]mesh.Finding
	// fresh are the names whose findings may differ from those reported.
	fresh map[string]struct{}
	// doubts are the files whose newest state is not believed yet.
	doubts map[string]doubt
	// seed makes the sums of this source's files.
	seed   maphash.Seed
	synced chan struct{}
}

// doubt is a state of a file that takes objects away, and when it was first seen.
type doubt struct {
	stamp stamp
	since time.Time
}

// file is one file as it was last read.
type file struct {
	// top is the first of the paths that leads to it, by index.
	top   int
	stamp stamp
	// stale is set where the stamp does not say that the file is as it was: it was written while it was read, or is said to
	// have been written since.
	stale bool
	// sum tells the text from another one.
	sum uint64
	// whole is set for a text that does not break off inside a line.
	whole bool
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
		holders:  map[decode.ID][]holding{},
		reported: map[string][]mesh.Finding{},
		fresh:    map[string]struct{}{},
		doubts:   map[string]doubt{},
		seed:     maphash.MakeSeed(),
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
	since := s.options.Clock.Now()
	return s.look(s.relist(), since), nil
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
	out := Summary{Files: len(s.files), Objects: len(s.holders), Skipped: map[string]int{}}
	for _, f := range s.files {
		for kind, n := range f.parsed.skipped {
			out.Skipped[kind] += n
		}
	}
	return out
}

// stamp tells one state of a file from another without reading it.
type stamp struct {
	size    int64
	changed time.Time
	inode   uint64
	device  uint64
}
