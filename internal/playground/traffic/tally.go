// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package traffic

import (
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"
)

// maxKinds is how many different bodies, and different failures, a tally tells apart.
const maxKinds = 64

// Tally counts what came of requests.
type Tally struct {
	Requests int `json:"requests"`
	// Bodies counts the responses with status 200 by their bodies.
	Bodies map[string]int `json:"bodies,omitempty"`
	// Failures counts everything else by what it was.
	Failures map[string]int `json:"failures,omitempty"`
	// Slowest is the longest time that a request took, Total the sum of all, in nanoseconds.
	Slowest time.Duration `json:"slowest"`
	Total   time.Duration `json:"total"`
}

func (t *Tally) count(r Result, took time.Duration) {
	t.Requests++
	t.Slowest = max(t.Slowest, took)
	t.Total += took
	switch r.Status {
	case http.StatusOK:
		t.Bodies = bump(t.Bodies, r.Body, 1)
	case 0:
		t.Failures = bump(t.Failures, r.Connection+": "+r.Error, 1)
	default:
		t.Failures = bump(t.Failures, r.String(), 1)
	}
}

// bump adds n to a count; what is beyond maxKinds is counted together.
func bump(counts map[string]int, kind string, n int) map[string]int {
	if counts == nil {
		counts = map[string]int{}
	}
	if _, known := counts[kind]; !known && len(counts) >= maxKinds {
		kind = "(others)"
	}
	counts[kind] += n
	return counts
}

func (t *Tally) clone() *Tally {
	c := *t
	c.Bodies, c.Failures = maps.Clone(t.Bodies), maps.Clone(t.Failures)
	return &c
}

// Since adds up the tallies of one target from the epoch on.
func (r Report) Since(epoch int, target string) Tally {
	var sum Tally
	for i := epoch; i < len(r.Epochs); i++ {
		if t := r.Epochs[i][target]; t != nil {
			sum.add(t)
		}
	}
	return sum
}

// All adds up everything.
func (r Report) All() Tally {
	var sum Tally
	for _, targets := range r.Epochs {
		for _, t := range targets {
			sum.add(t)
		}
	}
	return sum
}

func (t *Tally) add(other *Tally) {
	t.Requests += other.Requests
	t.Slowest = max(t.Slowest, other.Slowest)
	t.Total += other.Total
	for body, n := range other.Bodies {
		t.Bodies = bump(t.Bodies, body, n)
	}
	for failure, n := range other.Failures {
		t.Failures = bump(t.Failures, failure, n)
	}
}

// Failed is the number of requests that had no response with status 200.
func (t *Tally) Failed() int {
	n := 0
	for _, count := range t.Failures {
		n += count
	}
	return n
}

// Mean is the mean time of a request.
func (t *Tally) Mean() time.Duration {
	if t.Requests == 0 {
		return 0
	}
	return t.Total / time.Duration(t.Requests)
}

// WorstFailures names the commonest failures, at most n, the commonest first.
func (t *Tally) WorstFailures(n int) string {
	kinds := slices.SortedFunc(maps.Keys(t.Failures), func(a, b string) int {
		if d := t.Failures[b] - t.Failures[a]; d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	var words []string
	for _, kind := range kinds[:min(n, len(kinds))] {
		words = append(words, fmt.Sprintf("%d x %s", t.Failures[kind], kind))
	}
	return strings.Join(words, "; ")
}

// Split judges how a tally's bodies divide: each within sigmas standard deviations of its share of all, and no other
// bodies. shares are weights by body.
func (t *Tally) Split(shares map[string]int, sigmas float64) (ok bool, found string) {
	weights, counted := 0, 0
	for _, w := range shares {
		weights += w
	}
	for _, n := range t.Bodies {
		counted += n
	}
	ok = counted > 0
	var words []string
	for _, body := range slices.Sorted(maps.Keys(shares)) {
		p := float64(shares[body]) / float64(weights)
		n := float64(counted)
		deviation := math.Sqrt(n * p * (1 - p))
		off := float64(t.Bodies[body]) - n*p
		within := math.Abs(off) <= sigmas*deviation
		ok = ok && within
		word := fmt.Sprintf("%d of %d (%.1f %%, asked %.1f %%", t.Bodies[body], counted, percent(t.Bodies[body], counted), 100*p)
		if deviation > 0 {
			word += fmt.Sprintf(", %+.1f sigma", off/deviation)
		}
		words = append(words, word+")")
	}
	for _, body := range slices.Sorted(maps.Keys(t.Bodies)) {
		if _, asked := shares[body]; !asked {
			ok = false
			words = append(words, fmt.Sprintf("%d x %q, which nothing should have answered", t.Bodies[body], body))
		}
	}
	return ok, strings.Join(words, ", ")
}

func percent(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return 100 * float64(part) / float64(whole)
}
