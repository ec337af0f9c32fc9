// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package live_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// load sends requests until it is stopped, and counts the answers.
type load struct {
	send func() answer
	stop chan struct{}
	done sync.WaitGroup

	mu    sync.Mutex
	total int
	seen  map[string]int
}

// startLoad has so many workers send, each with a millisecond's pause.
func startLoad(workers int, send func() answer) *load {
	l := &load{send: send, stop: make(chan struct{}), seen: map[string]int{}}
	for range workers {
		l.done.Go(l.work)
	}
	return l
}

func (l *load) work() {
	for {
		select {
		case <-l.stop:
			return
		case <-time.After(time.Millisecond):
		}
		a := l.send()
		l.mu.Lock()
		l.total++
		l.seen[a.String()]++
		l.mu.Unlock()
	}
}

// more waits until so many further requests have been answered.
func (l *load) more(s *site, n int) {
	s.t.Helper()
	l.mu.Lock()
	until := l.total + n
	l.mu.Unlock()
	s.eventually(fmt.Sprintf("%d more answers", n), func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.total >= until
	})
}

// end stops the load and fails the test for every answer that was not 200.
func (l *load) end(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.done.Wait()
	for _, text := range slices.Sorted(maps.Keys(l.seen)) {
		if !strings.HasPrefix(text, "200") {
			t.Errorf("%d of %d requests failed: %s", l.seen[text], l.total, text)
		}
	}
	t.Logf("%d requests: %v", l.total, l.seen)
}

// share sends n requests and holds each answer's share, by weight, to four standard deviations.
func share(t *testing.T, n int, send func() answer, want map[string]int) {
	t.Helper()
	got := map[string]int{}
	var mu sync.Mutex
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for range n / 4 {
				a := send()
				mu.Lock()
				got[a.String()]++
				mu.Unlock()
			}
		})
	}
	workers.Wait()
	total := 0
	for _, w := range want {
		total += w
	}
	for text := range got {
		if _, known := want[text]; !known {
			t.Errorf("%d of %d answers were %q", got[text], n, text)
		}
	}
	for text, weight := range want {
		p := float64(weight) / float64(total)
		mean := float64(n) * p
		if off := math.Abs(float64(got[text]) - mean); off > 4*math.Sqrt(mean*(1-p)) {
			t.Errorf("%q had %d of %d answers, want %.0f: %.0f off is more than four standard deviations", text, got[text], n, mean, off)
		}
	}
	t.Logf("%v", got)
}
