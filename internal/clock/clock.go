// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package clock is the time that every other package is given, so that tests can hold it still; any package may call it.
package clock

import "time"

// Clock tells the time and makes timers.
type Clock interface {
	// Now returns the current time.
	Now() time.Time
	// After returns a channel that receives the time once d has passed.
	After(d time.Duration) <-chan time.Time
}

// Real is the machine's clock. The zero value is ready to use.
type Real struct{}

var _ Clock = Real{}

// Now returns the machine's current time.
func (Real) Now() time.Time { return time.Now() }

// After waits for d on the machine's clock.
func (Real) After(d time.Duration) <-chan time.Time { return time.After(d) }
