// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/tulle-mesh/tulle/internal/clock"
)

// line is a result in one line.
func (r result) line() string {
	e, w := r.Changes["endpoint"], r.Changes["weight"]
	return fmt.Sprintf("%dx%d %-9s connect %v cpu %v rss %d -> %d MB peak %d | endpoint cpu %v %d kB last %v | weight cpu %v %d kB last %v",
		r.Size.Clients, r.Size.Services, r.Server, r.Connect.Took.Round(time.Millisecond), r.Connect.CPU.Round(time.Millisecond),
		r.Connect.IdleKB>>10, r.Connect.AfterKB>>10, r.PeakKB>>10,
		e.CPU.Round(100*time.Microsecond), e.Bytes/1000, e.Median.Round(100*time.Microsecond),
		w.CPU.Round(100*time.Microsecond), w.Bytes/1000, w.Median.Round(100*time.Microsecond))
}

// report writes all results as Markdown.
func report(all []result) string {
	var b strings.Builder
	b.WriteString(intro())
	var last size
	floor := map[size]result{}
	for _, r := range all {
		if r.Server == "floor" {
			floor[r.Size] = r
		}
	}
	for _, r := range all {
		if r.Size != last {
			last = r.Size
			fmt.Fprintf(&b, "\n## %s, %d endpoints a service\n\n", r.Size, r.Size.Endpoints)
			b.WriteString("| server | one endpoint: CPU | bytes | last ack, median (p90) | one weight: CPU | bytes | last ack, median (p90) | connect all | CPU | kB a proxy | resident before | after | a proxy | peak |\n")
			b.WriteString("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n")
		}
		e, w, c := r.Changes["endpoint"], r.Changes["weight"], r.Connect
		fe, fw := floor[r.Size].Changes["endpoint"], floor[r.Size].Changes["weight"]
		fmt.Fprintf(&b, "| %s | %s ms%s | %s kB%s | %s (%s) ms | %s ms%s | %s kB%s | %s (%s) ms | %.2f s | %.2f s | %.1f | %.0f MB | %.0f MB | %.0f kB | %.0f MB |\n",
			r.Server,
			ms(e.CPU), ratio(e.CPU, fe.CPU), kb(e.Bytes), ratio(e.Bytes, fe.Bytes), ms(e.Median), ms(e.P90),
			ms(w.CPU), ratio(w.CPU, fw.CPU), kb(w.Bytes), ratio(w.Bytes, fw.Bytes), ms(w.Median), ms(w.P90),
			c.Took.Seconds(), c.CPU.Seconds(), float64(c.BytesPerClient)/1000,
			float64(c.IdleKB)/1024, float64(c.AfterKB)/1024, float64(c.AfterKB-c.IdleKB)/float64(r.Size.Clients), float64(r.PeakKB)/1024)
	}
	return b.String()
}

func intro() string {
	return fmt.Sprintf(`# What delivery costs

Written by `+"`make bench`"+` on %s: %s, %d cores, %s, %s %s, load average %s at the end. Every figure is of the server's own process (processor time from /proc/PID/stat,
10 ms ticks, averaged over the changes); the clients run in another process on the same cores, so the times contain their work too. Numbers in brackets are
multiples of the floor.

- **tulle** is `+"`tulle serve -f DIR --xds unix:///...`"+`; a change is one file written. Its figures contain reading the file, the model and the translation.
- **delivery** is Tulle's xDS server alone, given the same changes without files, model and translation.
- **floor** holds the same resources marshalled beforehand and fans the changed one out over plain gRPC. It keeps no versions and reads no answers.
- **snapshots** is go-control-plane's SnapshotCache (v0.14.0) with a snapshot for each node, built from the same resources on each change.

Each client has its own connection, asks as Envoy does and acknowledges everything. The service that changes is a backend of all of them, so each change goes to all.
`, clock.Real{}.Now().UTC().Format("2006-01-02"), cpuModel(), runtime.NumCPU(), runtime.Version(), runtime.GOOS, runtime.GOARCH, load())
}

func cpuModel() string {
	b, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return "unknown processor"
	}
	for line := range strings.Lines(string(b)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "unknown processor"
}

func ms(d time.Duration) string { return fmt.Sprintf("%.1f", float64(d.Microseconds())/1000) }

func kb(n int) string { return fmt.Sprintf("%.1f", float64(n)/1000) }

func ratio[T int | time.Duration](n, of T) string {
	if of == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.2f)", float64(n)/float64(of))
}
