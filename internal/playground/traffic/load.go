// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tulle-mesh/tulle/internal/clock"
)

// Plan says what load to send.
type Plan struct {
	Targets map[string]string `json:"targets"` // name to URL
	// Rate is in requests a second, of each target.
	Rate int `json:"rate"`
}

// Commands to a running load, one a line on its input. To each it answers with one line. The end of the input ends the
// load, which then answers once more.
const (
	// CommandEpoch begins a new epoch and answers with a Report that has only that.
	CommandEpoch = "epoch"
	// CommandReport answers with a Report of everything so far.
	CommandReport = "report"
)

// workers is how many requests to one target can be in flight.
const workers = 8

// Report is what the load has seen. Requests belong to the epoch in which they began.
type Report struct {
	Epoch int `json:"epoch"`
	// Epochs has for each epoch, from 0, the tally of each target.
	Epochs []map[string]*Tally `json:"epochs,omitempty"`
}

// load is a running load.
type load struct {
	plan  Plan
	clock clock.Clock
	epoch atomic.Int64
	mu    sync.Mutex
	tally []map[string]*Tally
}

// Load sends requests as the plan asks, at an even pace, and obeys the commands until they end. Half the workers keep
// their connections, half open a new one for each request.
func Load(ctx context.Context, p Plan, now clock.Clock, commands io.Reader, answers io.Writer) error {
	l := &load{plan: p, clock: now}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var running sync.WaitGroup
	for name, url := range p.Targets {
		running.Go(func() { l.pace(ctx, name, url) })
	}
	encoder := json.NewEncoder(answers)
	lines := bufio.NewScanner(commands)
	for lines.Scan() {
		var answer Report
		switch lines.Text() {
		case CommandEpoch:
			answer.Epoch = int(l.epoch.Add(1))
		case CommandReport:
			answer = l.report()
		default:
			return fmt.Errorf("load: unknown command %q", lines.Text())
		}
		if err := encoder.Encode(answer); err != nil {
			return fmt.Errorf("load: answering: %w", err)
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("load: reading commands: %w", err)
	}
	cancel()
	running.Wait()
	if err := encoder.Encode(l.report()); err != nil {
		return fmt.Errorf("load: answering: %w", err)
	}
	return nil
}

// pace hands out requests to one target to its workers. A request that finds none free is not sent: the load does not
// pile up.
func (l *load) pace(ctx context.Context, name, url string) {
	turns := make(chan struct{})
	var running sync.WaitGroup
	for i := range workers {
		running.Go(func() {
			client := newClient(1, i%2 == 0)
			defer client.CloseIdleConnections()
			for range turns {
				// What has begun is brought to its end, or the last requests would count as failed.
				l.one(context.WithoutCancel(ctx), client, name, url)
			}
		})
	}
	ticker := time.NewTicker(time.Second / time.Duration(l.plan.Rate))
	defer ticker.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-ticker.C:
			select {
			case turns <- struct{}{}:
			case <-ctx.Done():
			}
		}
	}
	close(turns)
	running.Wait()
}

func (l *load) one(ctx context.Context, client *http.Client, name, url string) {
	epoch := int(l.epoch.Load())
	began := l.clock.Now()
	result := get(ctx, client, url)
	took := l.clock.Now().Sub(began)
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.tally) <= epoch {
		l.tally = append(l.tally, map[string]*Tally{})
	}
	t := l.tally[epoch][name]
	if t == nil {
		t = new(Tally)
		l.tally[epoch][name] = t
	}
	t.count(result, took)
}

func (l *load) report() Report {
	l.mu.Lock()
	defer l.mu.Unlock()
	r := Report{Epoch: int(l.epoch.Load())}
	for _, targets := range l.tally {
		copied := map[string]*Tally{}
		for name, t := range targets {
			copied[name] = t.clone()
		}
		r.Epochs = append(r.Epochs, copied)
	}
	return r
}
