// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"cmp"
	"log/slog"
	"time"
)

// Clock is the time that the server goes by.
type Clock interface {
	Now() time.Time
	After(d time.Duration) <-chan time.Time
}

// Options is what a Server is made from.
type Options struct {
	Director      Director      // required
	Clock         Clock         // required
	Authenticator Authenticator // nil: every client is what it says it is
	Recorder      Recorder      // nil: nothing is recorded
	Logger        *slog.Logger  // nil: nothing is logged
	Limits        Limits
}

// Limits guard the server and the other proxies against a client at fault. A zero field takes the default.
type Limits struct {
	// Streams is the most that may be open at once; default 20,000.
	Streams int
	// Names is the most names of one type that a stream may subscribe to; default 20,000.
	Names int
	// NameLength is the longest name, in bytes; default 1024.
	NameLength int
	// Requests is how many requests a second a stream may send beside its answers to responses, and Burst how many at once; defaults 50 and 1000.
	Requests float64
	Burst    int
	// Unacked is how many responses of one type may be unanswered before changes wait and coalesce; default 64.
	Unacked int
	// Answer is how long a response may stay unanswered before the stream is cut; default 5 minutes.
	Answer time.Duration
	// Send is how long the transport may take to accept a response before the stream is cut; default 30 seconds.
	Send time.Duration
	// Hello is how long a stream may stay without its first request; default 30 seconds.
	Hello time.Duration
	// Hold is how long a route or listener waits for a cluster that warms; default 15 seconds.
	Hold time.Duration
	// Removal is how long, after a reconnect, the removal of clusters waits for the client to ask for its routes; default 5 seconds.
	Removal time.Duration
}

func (l Limits) withDefaults() Limits {
	l.Streams = cmp.Or(l.Streams, 20_000)
	l.Names = cmp.Or(l.Names, 20_000)
	l.NameLength = cmp.Or(l.NameLength, 1024)
	l.Requests = cmp.Or(l.Requests, 50)
	l.Burst = cmp.Or(l.Burst, 1000)
	l.Unacked = cmp.Or(l.Unacked, 64)
	l.Answer = cmp.Or(l.Answer, 5*time.Minute)
	l.Send = cmp.Or(l.Send, 30*time.Second)
	l.Hello = cmp.Or(l.Hello, 30*time.Second)
	l.Hold = cmp.Or(l.Hold, 15*time.Second)
	l.Removal = cmp.Or(l.Removal, 5*time.Second)
	return l
}
