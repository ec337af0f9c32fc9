// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// result is what was measured of one server at one size.
type result struct {
	Server  string
	Size    size
	Connect connectResult
	Changes map[string]changeResult // "endpoint" and "weight"
	PeakKB  int
}

// connectResult is the time until all clients have everything, and what it costs.
type connectResult struct {
	Took             time.Duration
	CPU              time.Duration
	BytesPerClient   int
	IdleKB, AfterKB  int // resident before and after
	ResponsesAClient float64
}

// changeResult is the cost of one change, on average, and the time until the last client has acknowledged it.
type changeResult struct {
	Count       int
	CPU         time.Duration
	Bytes       int
	Responses   float64
	Median, P90 time.Duration
}

// measure connects a fleet to a server and makes changes of both kinds. With capture it saves what the clients get.
func measure(ctx context.Context, s *server, sz size, count int, change func(kind string, i int) error, capture string) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r := result{Server: s.name, Size: sz, Changes: map[string]changeResult{}}
	pid := s.cmd.Process.Pid
	if err := s.settle(ctx); err != nil {
		return r, err
	}
	var err error
	if r.Connect.IdleKB, _, err = memory(pid); err != nil {
		return r, err
	}
	before, err := cpuSeconds(pid)
	if err != nil {
		return r, err
	}
	f := newFleet(s.addr, capture != "")
	if r.Connect.Took, err = f.connect(ctx, sz.Clients); err != nil {
		return r, fmt.Errorf("%s, %s: connect: %w", s.name, sz, err)
	}
	if err := f.quiet(ctx, time.Second); err != nil {
		return r, err
	}
	after, err := cpuSeconds(pid)
	if err != nil {
		return r, err
	}
	bytes, responses := f.received()
	r.Connect.CPU = seconds(after - before)
	r.Connect.BytesPerClient, r.Connect.ResponsesAClient = bytes/sz.Clients, float64(responses)/float64(sz.Clients)
	if r.Connect.AfterKB, _, err = memory(pid); err != nil {
		return r, err
	}
	if capture != "" {
		if err := f.scope.save(capture); err != nil {
			return r, err
		}
		f.mu.Lock()
		f.scope = nil
		f.mu.Unlock()
	}
	for _, kind := range []string{"endpoint", "weight"} {
		if r.Changes[kind], err = changes(ctx, f, pid, sz.Clients, count, kind, change); err != nil {
			return r, fmt.Errorf("%s, %s: %s: %w", s.name, sz, kind, err)
		}
	}
	_, r.PeakKB, err = memory(pid)
	return r, err
}

// changes makes so many changes of one kind, after a few that are not counted.
func changes(ctx context.Context, f *fleet, pid, clients, count int, kind string, change func(kind string, i int) error) (changeResult, error) {
	const unmeasured = 3
	c := changeResult{Count: count}
	var took []time.Duration
	var cpu float64
	var bytes, responses int
	for i := range unmeasured + count {
		if i == unmeasured {
			var err error
			if cpu, err = cpuSeconds(pid); err != nil {
				return c, err
			}
			bytes, responses = f.received()
		}
		is := isRoute
		if kind == "endpoint" {
			is = has(address(i))
		}
		d, err := f.change(ctx, clients, is, func() error { return change(kind, i) })
		if err != nil {
			return c, fmt.Errorf("change %d: %w", i, err)
		}
		if i >= unmeasured {
			took = append(took, d)
		}
		if err := f.quiet(ctx, 50*time.Millisecond); err != nil {
			return c, err
		}
	}
	after, err := cpuSeconds(pid)
	if err != nil {
		return c, err
	}
	b, n := f.received()
	slices.Sort(took)
	c.CPU, c.Bytes, c.Responses = seconds((after-cpu)/float64(count)), (b-bytes)/count, float64(n-responses)/float64(count)
	c.Median, c.P90 = took[len(took)/2], took[len(took)*9/10]
	return c, nil
}

// settle waits until the server does nothing.
func (s *server) settle(ctx context.Context) error {
	last := -1.0
	for {
		now, err := cpuSeconds(s.cmd.Process.Pid)
		if err != nil {
			return err
		}
		if now-last < 0.02 {
			return nil
		}
		last = now
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// address is the endpoint that change number i adds.
func address(i int) string { return fmt.Sprintf("10.251.%d.%d", 1+i/200, 1+i%200) }

// weight is the weight that change number i sets; it differs from the one before.
func weight(i int) int { return 2 + i%90 }

// compare measures Tulle, the floor and the SnapshotCache at one size.
func compare(ctx context.Context, tulle string, sz size, count int, servers []string) (results []result, err error) {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	m := manifests{dir: filepath.Join(dir, "manifests"), size: sz}
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		return nil, fmt.Errorf("scratch directory: %w", err)
	}
	if err := m.writeAll(); err != nil {
		return nil, err
	}
	scope := filepath.Join(dir, "scope")
	s, err := startTulle(ctx, tulle, m.dir)
	if err != nil {
		return nil, err
	}
	r, err := measure(ctx, s, sz, count, func(kind string, i int) error {
		if kind == "endpoint" {
			return m.endpoints(0, address(i))
		}
		return m.weight(0, weight(i))
	}, scope)
	s.stop()
	if err != nil {
		return nil, err
	}
	results = append(results, r)
	for _, kind := range servers {
		s, err := startBaseline(ctx, kind, scope)
		if err != nil {
			return nil, err
		}
		r, err := measure(ctx, s, sz, count, func(kind string, i int) error {
			if kind == "endpoint" {
				return s.command("endpoint " + address(i))
			}
			return s.command(fmt.Sprint("weight ", weight(i)))
		}, "")
		s.stop()
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	return results, nil
}
