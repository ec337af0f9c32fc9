// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"
)

// A traffic is what the load generator of test/e2e/app reports.
type traffic struct {
	Requests int
	Failures int
	Statuses map[string]int
	Bodies   map[string]int
	First    []string
	P50, P99 float64
}

// String says it in a few lines.
func (r traffic) String() string {
	return fmt.Sprintf("%d requests, %d failed, p50 %.1f ms, p99 %.1f ms, %v, %v\n%s", r.Requests, r.Failures, r.P50, r.P99, r.Statuses, r.Bodies, strings.Join(r.First, "\n"))
}

// A loading is traffic that goes on until stop is called.
type loading struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Closer
	out   *strings.Builder
	done  bool
}

// load starts traffic from a container of a pod whose image has the load generator. The arguments are the generator's: "-rate 300 -methods GET,POST http://...".
func load(t *testing.T, namespace, pod, container, args string) *loading {
	t.Helper()
	line := append([]string{"-n", namespace, "exec", "-i", pod, "-c", container, "--", "/usr/bin/app", "load", "-until-eof", "-for", "30m"}, strings.Fields(args)...)
	l := &loading{t: t, cmd: exec.CommandContext(t.Context(), "kubectl", line...), out: new(strings.Builder)}
	stdin, err := l.cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	l.stdin, l.cmd.Stdout, l.cmd.Stderr = stdin, l.out, os.Stderr
	if err := l.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if !l.done {
			_ = l.stdin.Close()
			_ = l.cmd.Wait()
		}
	})
	return l
}

// stop ends the traffic and returns what came of it.
func (l *loading) stop() traffic {
	l.t.Helper()
	l.done = true
	_ = l.stdin.Close()
	if err := l.cmd.Wait(); err != nil {
		l.t.Fatalf("the load generator: %v\n%s", err, l.out.String())
	}
	var r traffic
	if err := json.Unmarshal([]byte(l.out.String()), &r); err != nil {
		l.t.Fatalf("the load generator's report: %v\n%s", err, l.out.String())
	}
	l.t.Logf("%s", r)
	return r
}

// noFailures fails the test unless there were enough requests and all were answered with 200.
func (r traffic) noFailures(t *testing.T, atLeast int) {
	t.Helper()
	if r.Requests < atLeast || r.Failures != 0 {
		t.Errorf("want at least %d requests and no failure: %s", atLeast, r)
	}
}

// samples is how many answers a split is measured by.
const samples = 1000

// split looks at how a service of the DJ app divides its requests, from the dj container. The walkthrough's loop goes on until every version answers; one curl then makes the
// many requests that a share is measured by, and once more where it is off: three standard deviations are overstepped by chance once in four hundred times.
func (s *shell) split(service string, shares map[string]float64) {
	s.t.Helper()
	url := "http://" + service + ".prod.svc.cluster.local:9080/"
	eventually(s.t, time.Minute, func() error {
		got := counted(s.t, s.run(intoPod, "for i in $(seq 30); do curl -s "+url+"; echo; done | sort | uniq -c").text)
		if len(got) != len(shares) {
			return fmt.Errorf("%s: want %d kinds of answers: %v", service, len(shares), got)
		}
		return nil
	})
	ask := func(n int) map[string]int {
		return counted(s.t, s.run(intoPod, fmt.Sprintf(`curl -s -w '\n' "%s?[1-%d]" | sort | uniq -c`, url, n)).text)
	}
	counts := ask(samples)
	if off(counts, shares) != nil {
		counts = ask(samples)
	}
	s.t.Logf("%s: %v", service, counts)
	for _, fault := range off(counts, shares) {
		s.t.Errorf("%s: %s", service, fault)
	}
}

// off says what of the counts is more than three standard deviations away from its share, or is nothing that is expected.
func off(counts map[string]int, shares map[string]float64) []string {
	var faults []string
	total := 0
	for text, n := range counts {
		if _, known := shares[text]; !known {
			faults = append(faults, fmt.Sprintf("%d answers are none of those expected: %q", n, text))
		}
		total += n
	}
	for text, share := range shares {
		n, want := float64(counts[text]), share*float64(total)
		if math.Abs(n-want) > 3*math.Sqrt(float64(total)*share*(1-share)) {
			faults = append(faults, fmt.Sprintf("of %d answers %.0f are %q; want about %.0f", total, n, text, want))
		}
	}
	slices.Sort(faults)
	return faults
}

// counted turns what "sort | uniq -c" prints into counts.
func counted(t *testing.T, text string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	for line := range strings.Lines(text) {
		var n int
		number, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if _, err := fmt.Sscan(number, &n); err != nil {
			t.Fatalf("not a count: %q", line)
		}
		counts[rest] = n
	}
	return counts
}
