// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package plane

import (
	"slices"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// reader is what is computed from the model: a group's View, an Offer that Views share, or an endpoint set. Exactly one field is set.
type reader struct {
	group *group
	offer *offer
	set   *set
}

// index is the reverse index: for each key of the model those who read it, found or not, each once and in no order. It is complete because the reads themselves are recorded.
// Most keys have one reader or two, so lists take a tenth of the memory that sets would.
type index map[mesh.Key][]reader

// replace makes r a reader of next alone, where before it read last. Both are sorted.
func (x index) replace(r reader, last, next []mesh.Key) {
	i, j := 0, 0
	for i < len(last) || j < len(next) {
		switch {
		case j == len(next) || (i < len(last) && last[i].Compare(next[j]) < 0):
			x.drop(last[i], r)
			i++
		case i == len(last) || last[i].Compare(next[j]) > 0:
			x.add(next[j], r)
			j++
		default:
			i++
			j++
		}
	}
}

func (x index) add(k mesh.Key, r reader) {
	x[k] = append(x[k], r)
}

func (x index) drop(k mesh.Key, r reader) {
	list := x[k]
	i, last := slices.Index(list, r), len(list)-1
	if last == 0 {
		delete(x, k)
		return
	}
	list[i] = list[last]
	list[last] = reader{}
	x[k] = list[:last]
}

// touched is what a change concerns.
type touched struct {
	groups map[*group]struct{}
	offers map[*offer]struct{}
	sets   map[*set]struct{}
}

// readers returns everything that read one of keys or a list that one of them is in.
func (x index) readers(keys []mesh.Key) touched {
	t := touched{groups: map[*group]struct{}{}, offers: map[*offer]struct{}{}, sets: map[*set]struct{}{}}
	for _, k := range keys {
		t.add(x[k])
		t.add(x[k.List()])
	}
	return t
}

func (t touched) add(readers []reader) {
	for _, r := range readers {
		switch {
		case r.group != nil:
			t.groups[r.group] = struct{}{}
		case r.offer != nil:
			t.offers[r.offer] = struct{}{}
		default:
			t.sets[r.set] = struct{}{}
		}
	}
}
