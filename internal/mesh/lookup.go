// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"slices"
	"strings"
)

// lookup is the only way by which a View or an EndpointSet reads the model: it notes each key, found or not, so that no read escapes the reverse index.
type lookup struct {
	reader   Reader
	read     []Key
	findings []Finding
}

func newLookup(r Reader, keys int) lookup {
	return lookup{reader: r, read: make([]Key, 0, keys)}
}

// serviceSuffix is the end of the full names of the cluster's Services, in lower case: ".svc.cluster.local".
func (l *lookup) serviceSuffix() string {
	return ".svc." + strings.ToLower(l.reader.Options().Domain())
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
	list := slices.Compact(l.read)
	if cap(list) > len(list)+len(list)/2 {
		return slices.Clone(list) // they are kept, so they take no more memory than they need
	}
	return list
}

// report notes a finding, its value and message cut to what a reader can take in.
func (l *lookup) report(f Finding) {
	f.Value, f.Message = shorten(f.Value), cut(f.Message, maxMessage)
	l.findings = append(l.findings, f)
}

// maxValue and maxMessage are how many characters of a user's value, and of a message that repeats names, a finding shows. Names that the API allows are never cut.
const (
	maxValue   = 80
	maxMessage = 1000
)

// shorten cuts a user's value for a finding.
func shorten(text string) string { return cut(text, maxValue) }

// cut leaves the first limit characters of text, the last of them "…" where there were more, and makes it valid UTF-8.
func cut(text string, limit int) string {
	count, end := 0, 0
	for i := range text {
		if count == limit-1 {
			end = i
		}
		if count == limit {
			return strings.ToValidUTF8(text[:end], "\uFFFD") + "…"
		}
		count++
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}
