// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"maps"
	"slices"
	"weak"
)

// memo finds what was made before from the same input, for as long as somebody else holds it. The zero value is ready to use.
type memo[K comparable, V any] struct {
	// made holds what was made from each input; things that the input does not tell apart stand beside each other.
	made map[K][]weak.Pointer[V]
	// full is the number of inputs at which those are dropped of which nothing is held any more.
	full int
}

// smallest is how many inputs a memo has before it drops any.
const smallest = 64

// get returns what was made from input and is the same, and makes it where there is none.
func (m *memo[K, V]) get(input K, same func(*V) bool, fresh func() *V) *V {
	for _, w := range m.made[input] {
		if v := w.Value(); v != nil && same(v) {
			return v
		}
	}
	v := fresh()
	if m.made == nil {
		m.made = map[K][]weak.Pointer[V]{}
	}
	if len(m.made) >= max(m.full, smallest) {
		m.sweep()
	}
	m.made[input] = append(live(m.made[input]), weak.Make(v))
	return v
}

// sweep drops what nobody holds, and puts off the next time so that it costs little for each thing made.
func (m *memo[K, V]) sweep() {
	for input, list := range m.made {
		m.made[input] = live(list)
	}
	maps.DeleteFunc(m.made, func(_ K, list []weak.Pointer[V]) bool { return len(list) == 0 })
	m.full = 2 * len(m.made)
}

func live[V any](list []weak.Pointer[V]) []weak.Pointer[V] {
	return slices.DeleteFunc(list, func(w weak.Pointer[V]) bool { return w.Value() == nil })
}
