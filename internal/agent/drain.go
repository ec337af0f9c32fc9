// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/tulle-mesh/tulle/internal/clock"
)

const (
	// announceTime is between the failed health check and the drain of the listeners, so that whoever asks for health hears it first.
	announceTime = time.Second
	// pollTime is between two looks at what is in flight.
	pollTime = 250 * time.Millisecond
	// quietTime is how long no request may have come for the proxy to count as quiet.
	quietTime = time.Second
	// closeTime is how long requests that came at the very last moment may take once no connection is taken any more.
	closeTime = time.Second
	// inFlight names the statistics of requests under way and of connections; connections of TCP are those of listeners that HTTP does not count.
	inFlight = `^http\..*\.downstream_(rq_active|rq_total|cx_active)$|^listener\..*\.downstream_cx_(active|total)$`
)

// drainer lets Envoy's clients go. Envoy still serves, and takes new connections, after run; close ends that.
type drainer struct {
	admin  *admin
	clock  clock.Clock
	log    *slog.Logger
	config Drain

	start sync.Once
	// done is closed when the drain is over.
	done chan struct{}
	mu   sync.Mutex
	// begun is when the drain began; zero before.
	begun time.Time
}

// draining says whether the drain has begun.
func (d *drainer) draining() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.begun.IsZero()
}

// run tells Envoy's clients to go and waits until nothing is in flight, or until the limit. Only the first call does so; others wait for it.
func (d *drainer) run(ctx context.Context) {
	d.start.Do(func() {
		defer close(d.done)
		// An Envoy that never served has nobody to let go.
		if _, live, err := d.admin.live(ctx); d.config.Limit == 0 || err != nil || !live {
			return
		}
		d.mu.Lock()
		d.begun = d.clock.Now()
		d.mu.Unlock()
		d.announce(ctx)
		d.wait(ctx)
	})
	select {
	case <-d.done:
	case <-ctx.Done():
	}
}

// announce fails Envoy's health check, whereupon every answer closes its connection, and then drains the listeners.
func (d *drainer) announce(ctx context.Context) {
	if err := d.admin.post(ctx, "/healthcheck/fail"); err != nil {
		d.log.WarnContext(ctx, "Envoy cannot be told to fail its health check", "error", err)
	}
	d.sleep(ctx, min(announceTime, d.config.Limit))
	if err := d.admin.post(ctx, "/drain_listeners?graceful&skip_exit"); err != nil {
		d.log.WarnContext(ctx, "Envoy cannot be told to drain its listeners", "error", err)
	}
}

// wait returns when nothing is in flight and nothing new has come for a while, not before the minimum, and at the limit in any case.
func (d *drainer) wait(ctx context.Context) {
	quietSince, seen := d.clock.Now(), int64(-1)
	for {
		now := d.clock.Now()
		load, err := d.load(ctx)
		if err != nil {
			d.log.WarnContext(ctx, "Envoy cannot be asked what is in flight: the drain ends", "error", err)
			return
		}
		if load.active() > 0 || load.total != seen {
			quietSince, seen = now, load.total
		}
		waited := now.Sub(d.begun)
		switch {
		case now.Sub(quietSince) >= quietTime && waited >= d.config.Minimum:
			d.log.InfoContext(ctx, "drained: nothing is in flight", "after", waited)
			return
		case waited >= d.config.Limit:
			d.log.WarnContext(ctx, "the drain ends at its limit with work in flight", "after", waited, "requests", load.requests, "tcp_connections", load.connections)
			return
		}
		if !d.sleep(ctx, pollTime) {
			return
		}
	}
}

// close makes Envoy refuse new connections, and waits shortly for requests that came meanwhile.
func (d *drainer) close(ctx context.Context) {
	if d.config.Limit == 0 {
		return
	}
	if err := d.admin.post(ctx, "/drain_listeners"); err != nil {
		d.log.WarnContext(ctx, "Envoy cannot be told to close its listeners", "error", err)
		return
	}
	for end := d.clock.Now().Add(closeTime); d.clock.Now().Before(end); {
		load, err := d.load(ctx)
		if err != nil || load.requests == 0 || !d.sleep(ctx, pollTime/5) {
			return
		}
	}
}

// sleep says whether the time has passed before the context ended.
func (d *drainer) sleep(ctx context.Context, t time.Duration) bool {
	select {
	case <-d.clock.After(t):
		return true
	case <-ctx.Done():
		return false
	}
}

// load is what Envoy is at.
type load struct {
	// requests are HTTP requests under way, connections those of TCP that are open.
	requests, connections int64
	// total counts all requests and connections ever.
	total int64
}

func (l load) active() int64 { return l.requests + l.connections }

func (d *drainer) load(ctx context.Context) (load, error) {
	numbers, err := d.admin.stats(ctx, inFlight)
	if err != nil {
		return load{}, err
	}
	return loadOf(numbers), nil
}

// loadOf sums Envoy's statistics up. What the administration and the agent's own listener do is no load.
func loadOf(numbers map[string]int64) load {
	var l load
	var http, all int64
	for name, n := range numbers {
		scope, what, found := cutLast(name, ".")
		if !found || ownScope(scope) {
			continue
		}
		switch {
		case strings.HasPrefix(scope, "http."):
			switch what {
			case "downstream_rq_active":
				l.requests += n
			case "downstream_rq_total":
				l.total += n
			case "downstream_cx_active":
				http += n
			}
		case what == "downstream_cx_active":
			all += n
		case what == "downstream_cx_total":
			l.total += n
		}
	}
	l.connections = max(0, all-http)
	return l
}

// ownScope tells the statistics of the administration, of the agent's own listener and of single worker threads from those of the mesh.
func ownScope(scope string) bool {
	switch scope {
	case "http.admin", "http.agent_stats", "listener.admin", "listener.agent_stats":
		return true
	}
	return strings.HasPrefix(scope, "listener.") && (strings.Contains(scope, ".worker_") || strings.HasSuffix(scope, ".main_thread"))
}
