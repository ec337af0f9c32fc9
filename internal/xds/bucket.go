// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import "time"

// bucket limits how fast a client may send requests: tokens come back at a rate, up to a size.
type bucket struct {
	rate   float64 // tokens a second
	size   float64
	tokens float64
	last   time.Time
}

// take takes one token; false if there is none.
func (b *bucket) take(now time.Time) bool {
	if !b.last.IsZero() {
		b.tokens = min(b.size, b.tokens+now.Sub(b.last).Seconds()*b.rate)
	}
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}
