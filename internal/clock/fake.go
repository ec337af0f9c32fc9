// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package clock

import (
	"sync"
	"time"
)

// Fake is a clock that moves only when it is told to. The zero value starts at the zero time; it is safe for concurrent use.
type Fake struct {
	mu     sync.Mutex
	now    time.Time
	timers []timer
}

type timer struct {
	at time.Time
	ch chan time.Time
}

var _ Clock = (*Fake)(nil)

// NewFake returns a clock that stands at now.
func NewFake(now time.Time) *Fake { return &Fake{now: now} }

// Now returns the time that the clock was last moved to.
func (f *Fake) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.now
}

// After returns a channel that receives once Advance has moved the clock by d or more; for d <= 0 at once.
func (f *Fake) After(d time.Duration) <-chan time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	ch := make(chan time.Time, 1)
	if d <= 0 {
		ch <- f.now
		return ch
	}
	f.timers = append(f.timers, timer{at: f.now.Add(d), ch: ch})
	return ch
}

// Waiting is the number of timers that have not fired.
func (f *Fake) Waiting() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.timers)
}

// Advance moves the clock by d and fires every timer that is due.
func (f *Fake) Advance(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now = f.now.Add(d)
	waiting := f.timers[:0]
	for _, t := range f.timers {
		if t.at.After(f.now) {
			waiting = append(waiting, t)
			continue
		}
		t.ch <- f.now
	}
	f.timers = waiting
}
