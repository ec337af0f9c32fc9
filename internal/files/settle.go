// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// holding is a place that gives an object: an entry of a file, by index.
type holding struct {
	name string
	at   int
}

func (s *Source) replace(name string, old, next *file, dirty map[decode.ID]struct{}) {
	s.forgetEntries(name, old, dirty)
	s.files[name] = next
	s.fresh[name] = struct{}{}
	for i, e := range next.entries {
		s.holders[e.id] = append(s.holders[e.id], holding{name: name, at: i})
		dirty[e.id] = struct{}{}
	}
}

func (s *Source) forgetEntries(name string, old *file, dirty map[decode.ID]struct{}) {
	if old == nil {
		return
	}
	for _, e := range old.entries {
		dirty[e.id] = struct{}{}
		rest := slices.DeleteFunc(s.holders[e.id], func(h holding) bool { return h.name == name })
		if len(rest) == 0 {
			delete(s.holders, e.id)
			continue
		}
		s.holders[e.id] = rest
	}
}

// settle gives the decoder the last of each object that may have changed.
func (s *Source) settle(dirty map[decode.ID]struct{}) {
	for id := range dirty {
		places := s.holders[id]
		if len(places) == 0 {
			s.decoder.Delete(id)
			continue
		}
		slices.SortFunc(places, s.compare)
		final := places[len(places)-1]
		last := s.files[final.name].entries[final.at].object
		for _, place := range places[:len(places)-1] {
			earlier := s.files[place.name].entries[place.at].object
			last.Findings = append(slices.Clone(last.Findings), twice(id, earlier, last))
		}
		s.decoder.Set(last)
	}
}

// compare orders places as they are read: by the path that was given, then by the names of directories and files.
func (s *Source) compare(a, b holding) int {
	if a.name == b.name {
		return cmp.Compare(a.at, b.at)
	}
	return cmp.Or(cmp.Compare(s.files[a.name].top, s.files[b.name].top), compareNames(a.name, b.name))
}

// compareNames orders the files of a directory, and of those inside it, by the names on the way to them.
func compareNames(a, b string) int {
	for a != "" && b != "" {
		var first, second string
		first, a, _ = strings.Cut(a, "/")
		second, b, _ = strings.Cut(b, "/")
		if order := cmp.Compare(first, second); order != 0 {
			return order
		}
	}
	return cmp.Compare(len(a), len(b))
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
func (s *Source) report(changes *mesh.Changes) {
	for name := range s.fresh {
		var now []mesh.Finding
		if f := s.files[name]; f != nil {
			now = mesh.SortFindings(slices.Clone(f.parsed.findings))
		}
		if finding, bad := s.listing.bad[name]; bad {
			now = append(now, finding)
		}
		if slices.Equal(now, s.reported[name]) {
			continue
		}
		if changes.Findings == nil {
			changes.Findings = map[mesh.Source][]mesh.Finding{}
		}
		changes.Findings[mesh.Source{Kind: kindFile, Name: name}] = now
		if len(now) == 0 {
			delete(s.reported, name)
		} else {
			s.reported[name] = now
		}
	}
	// A map that once was large stays slow to walk.
	s.fresh = map[string]struct{}{}
}

// kindFile is the kind of the source under which the findings of a file as such are kept.
const kindFile = "File"
