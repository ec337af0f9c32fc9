// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// A load is requests at a steady rate, whether or not earlier ones were answered.
type load struct {
	urls    []string
	methods []string
	rate    float64
	length  time.Duration
	timeout time.Duration
	fresh   float64
}

// A report is what came of them.
type report struct {
	Requests int `json:"requests"`
	// Failures are requests without an answer, or with one that is not 200.
	Failures int `json:"failures"`
	// Statuses counts by method, and status or kind of error.
	Statuses map[string]int `json:"statuses"`
	// Bodies counts the answers with 200 by their beginning.
	Bodies map[string]int `json:"bodies"`
	// First are the first failures in words.
	First []string `json:"first,omitempty"`
	// P50 and P99 are how long answers took, in milliseconds.
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
}

// A result is what came of one request.
type result struct {
	method, url, status, body string
	failed                    bool
	began, took               time.Duration
}

const (
	bodyKept     = 200
	failuresKept = 20
)

// runLoad sends requests until the time is over, it is told to end, or its standard input is closed, and then prints the report as JSON.
func runLoad(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	l, untilEOF, err := parseLoad(args)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, l.length)
	defer cancel()
	if untilEOF {
		go func() {
			_, _ = io.Copy(io.Discard, in)
			cancel()
		}()
	}
	return json.NewEncoder(out).Encode(l.run(ctx))
}

func parseLoad(args []string) (load, bool, error) {
	var l load
	flags := flag.NewFlagSet("load", flag.ContinueOnError)
	methods := flags.String("methods", "GET", "methods, in turn, with commas between")
	flags.Float64Var(&l.rate, "rate", 200, "requests a second")
	flags.DurationVar(&l.length, "for", 10*time.Second, "how long, at most")
	flags.DurationVar(&l.timeout, "timeout", 10*time.Second, "how long an answer may take")
	flags.Float64Var(&l.fresh, "fresh", 0.5, "share of requests that have a connection of their own")
	untilEOF := flags.Bool("until-eof", false, "end as soon as standard input is closed")
	if err := flags.Parse(args); err != nil {
		return l, false, err
	}
	l.urls, l.methods = flags.Args(), strings.Split(*methods, ",")
	if len(l.urls) == 0 || l.rate <= 0 {
		return l, false, errors.New("usage: app load [-rate N] [-for D] [-methods GET,POST] [-fresh SHARE] [-timeout D] [-until-eof] URL")
	}
	return l, *untilEOF, nil
}

// run begins requests until the context ends, and waits for the answers to all of them.
func (l load) run(ctx context.Context) report {
	kept := &http.Client{Timeout: l.timeout, Transport: &http.Transport{MaxIdleConnsPerHost: 50}}
	fresh := &http.Client{Timeout: l.timeout, Transport: &http.Transport{DisableKeepAlives: true}}
	begin := time.Now() //nolint:forbidigo // what is measured is time
	ticks := time.NewTicker(time.Duration(float64(time.Second) / l.rate))
	defer ticks.Stop()
	var (
		waiting sync.WaitGroup
		mu      sync.Mutex
		all     []result
	)
	for n := 0; ; n++ {
		select {
		case <-ctx.Done():
			waiting.Wait()
			return sum(all)
		case <-ticks.C:
		}
		client := kept
		// Every round of methods in its turn, so that the share is exact, and each method has both.
		if round := float64(n / len(l.methods)); int((round+1)*l.fresh) > int(round*l.fresh) {
			client = fresh
		}
		method, url := l.methods[n%len(l.methods)], l.urls[n/len(l.methods)%len(l.urls)]
		waiting.Go(func() {
			r := send(context.WithoutCancel(ctx), client, method, url, begin)
			mu.Lock()
			defer mu.Unlock()
			all = append(all, r)
		})
	}
}

// send makes one request.
func send(ctx context.Context, client *http.Client, method, url string, begin time.Time) result {
	began := time.Since(begin)
	r := result{method: method, url: url, began: began, failed: true}
	var content io.Reader = http.NoBody
	if method == http.MethodPost {
		content = strings.NewReader("something to keep")
	}
	request, err := http.NewRequestWithContext(ctx, method, url, content)
	if err != nil {
		r.status = "no request"
		r.body = err.Error()
		return r
	}
	answer, err := client.Do(request)
	if err != nil {
		r.status, r.body = "no answer", err.Error()
		return r
	}
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	r.took = time.Since(begin) - began
	r.body = string(body[:min(len(body), bodyKept)])
	if err != nil {
		r.status, r.body = "half an answer", err.Error()
		return r
	}
	r.status, r.failed = fmt.Sprint(answer.StatusCode), answer.StatusCode != http.StatusOK
	return r
}

// sum makes the report.
func sum(all []result) report {
	slices.SortFunc(all, func(a, b result) int { return int(a.began - b.began) })
	total := report{Requests: len(all), Statuses: map[string]int{}, Bodies: map[string]int{}}
	var took []time.Duration
	for _, r := range all {
		total.Statuses[r.method+" "+r.status]++
		if !r.failed {
			total.Bodies[r.body]++
			took = append(took, r.took)
			continue
		}
		total.Failures++
		if len(total.First) < failuresKept {
			total.First = append(total.First, fmt.Sprintf("after %.3f s: %s %s: %s: %s", r.began.Seconds(), r.method, r.url, r.status, r.body))
		}
	}
	slices.Sort(took)
	if n := len(took); n > 0 {
		total.P50, total.P99 = took[n/2].Seconds()*1e3, took[n*99/100].Seconds()*1e3
	}
	return total
}
