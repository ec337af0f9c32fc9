// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"slices"
	"unicode/utf8"
)

// lookup is the only way by which a View or an EndpointSet reads the model: it notes each key, found or not, so that no read escapes the reverse index.
type lookup struct {
	reader   Reader
	options  Options
	read     []Key
	findings []Finding
}

func newLookup(r Reader) lookup {
	return lookup{reader: r, options: r.Options(), read: make([]Key, 0, 64)}
}

// find returns the object under key, and notes the key.
func find[T Object](l *lookup, key Key) (T, bool) {
	l.read = append(l.read, key)
	o, ok := l.reader.Get(key).(T)
	return o, ok
}

// children returns the objects of list's kind, mesh and parent, sorted by name, and notes list.
func (l *lookup) children(list Key) []Object {
	list = list.List()
	l.read = append(l.read, list)
	return l.reader.Children(list)
}

// keys returns what was read, sorted, each key once.
func (l *lookup) keys() []Key {
	slices.SortFunc(l.read, Key.Compare)
	return slices.Compact(l.read)
}

// report notes a finding, its value cut to what a reader can take in.
func (l *lookup) report(f Finding) {
	f.Value = shorten(f.Value)
	l.findings = append(l.findings, f)
}

// maxShown is how many characters of a user's value a finding shows.
const maxShown = 80

// shorten cuts text to maxShown characters and makes it valid UTF-8.
func shorten(text string) string {
	count := 0
	for i := range text {
		if count == maxShown-1 && utf8.RuneCountInString(text[i:min(len(text), i+8)]) > 1 {
			return valid(text[:i]) + "…"
		}
		count++
	}
	return valid(text)
}

func valid(text string) string {
	if utf8.ValidString(text) {
		return text
	}
	return string([]rune(text))
}
