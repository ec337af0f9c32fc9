// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import "time"

// Duration is a time span in the App Mesh API's form. A nil *Duration means "not set: the default holds"; a value of 0 means "off".
type Duration struct {
	// Value counts units; 0 or more.
	Value int64 `json:"value"`
	// Unit is "s" or "ms".
	Unit DurationUnit `json:"unit"`
}

// DurationUnit is the unit of a Duration.
type DurationUnit string

// The units of the App Mesh API.
const (
	Seconds      DurationUnit = "s"
	Milliseconds DurationUnit = "ms"
)

// Or returns the time span, or fallback where d is not set. A result of 0 means "off".
func (d *Duration) Or(fallback time.Duration) time.Duration {
	if d == nil {
		return fallback
	}
	return d.Span()
}

// Span returns d as a time span; 0 for nil. Values too large for a time.Duration (292 years) are cut to its maximum.
func (d *Duration) Span() time.Duration {
	if d == nil {
		return 0
	}
	unit := time.Second
	if d.Unit == Milliseconds {
		unit = time.Millisecond
	}
	if d.Value > int64((1<<63-1)/unit) {
		return 1<<63 - 1
	}
	return time.Duration(d.Value) * unit
}
