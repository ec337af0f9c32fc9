// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"errors"
	"hash/maphash"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// look reads those of the named files that changed, and no others; since is when that was noticed. A change that takes
// objects away is believed only once it has stood for a while, since the file may be half written; until then it is a doubt.
func (s *Source) look(names []string, since time.Time) mesh.Changes {
	dirty := map[decode.ID]struct{}{}
	for _, name := range names {
		s.read(name, dirty)
	}
	s.settle(dirty)
	changes := s.decoder.Flush()
	s.report(&changes)
	if !changes.Empty() {
		changes.Since = since
	}
	return changes
}

// read reads a file if it changed, and drops one that is gone.
func (s *Source) read(name string, dirty map[decode.ID]struct{}) {
	old := s.files[name]
	if _, listed := s.listing.files[name]; !listed {
		s.gone(name, old, dirty)
		return
	}
	now, text, err := s.content(name, old)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		s.gone(name, old, dirty)
		return
	case errors.Is(err, errUnchanged), err != nil && old != nil && old.bad != nil && err.Error() == old.bad.Error():
		delete(s.doubts, name)
		return
	}
	next := &file{
		top: s.listing.top(name), stamp: now, stale: s.isYoung(now), sum: maphash.Bytes(s.seed, text), whole: isWhole(text),
		bad: err, parsed: &parsed{},
	}
	if err == nil && old != nil && old.bad == nil && old.sum == next.sum {
		old.stamp, old.stale = now, next.stale
		delete(s.doubts, name)
		return
	}
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
	if old != nil && next.isDoubtful(old) && s.doubt(name, now) {
		return
	}
	delete(s.doubts, name)
	s.replace(name, old, next, dirty)
}

// gone drops a file that is not there any more, unless all of the path that led to it is gone.
func (s *Source) gone(name string, old *file, dirty map[decode.ID]struct{}) {
	if s.listing.keeps(name) {
		delete(s.doubts, name)
		return
	}
	if old != nil && s.doubt(name, stamp{}) {
		return
	}
	delete(s.doubts, name)
	delete(s.listing.files, name)
	s.forgetEntries(name, old, dirty)
	delete(s.files, name)
	s.fresh[name] = struct{}{}
}

// isYoung says whether a file that is written once more may keep its stamp, for file systems tell time in steps.
func (s *Source) isYoung(now stamp) bool { return s.options.Clock.Now().Sub(now.changed) < settleTime }

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

// due is how long to wait before a doubtful file can be believed, and false where there is none.
func (s *Source) due() (wait time.Duration, doubtful bool) {
	now := s.options.Clock.Now()
	wait = settleTime
	for _, d := range s.doubts {
		wait = min(wait, d.since.Add(settleTime).Sub(now))
	}
	return max(wait, 0), len(s.doubts) > 0
}

// isDoubtful says whether a state looks like that of a file which is still being written.
func (f *file) isDoubtful(old *file) bool {
	return f.parsed.broken || old.whole && !f.whole || f.lacks(old)
}

// isWhole says whether a text may be all of a file. A text that breaks off inside a line may be the beginning of one; of
// JSON the beginning cannot be read anyway.
func isWhole(text []byte) bool {
	return len(text) == 0 || text[len(text)-1] == '\n' || isJSON(text)
}

// merge takes over from the file's last state what the new one cannot say.
func (f *file) merge(old *file) {
	if f.parsed.broken && old != nil {
		f.entries = old.entries
		return
	}
	last := sync.OnceValue(func() map[decode.ID]entry {
		all := map[decode.ID]entry{}
		if old != nil {
			for _, e := range slices.Backward(old.entries) {
				all[e.id] = e
			}
		}
		return all
	})
	for _, e := range f.parsed.entries {
		if e.refused {
			earlier, had := last()[e.id]
			if !had {
				continue
			}
			e = earlier
		}
		f.entries = append(f.entries, e)
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
