// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package playground

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// How proxies are watched while they take a change over.
const (
	pollEvery = 5 * time.Millisecond
	// quiet is how long nothing must have moved before a change counts as taken over.
	quiet         = 400 * time.Millisecond
	settleTimeout = 60 * time.Second
)

// controlPlane is the running tulle serve.
type controlPlane struct {
	process *process
	client  *http.Client
}

func (w *world) xdsAddress() string { return "unix://" + filepath.Join(w.dir, "xds.sock") }

// startControlPlane starts tulle serve on the manifests, and waits until it has read them.
func (w *world) startControlPlane(ctx context.Context) error {
	debug := filepath.Join(w.dir, "debug.sock")
	cmd := exec.CommandContext(ctx, w.program("tulle"), "serve", "-f", filepath.Join(w.dir, "manifests"), //nolint:gosec // our own program
		"--xds", w.xdsAddress(), "--http", "unix://"+debug)
	process, err := w.start("tulle", cmd)
	if err != nil {
		return err
	}
	w.plane = &controlPlane{process: process, client: &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", debug)
		}},
	}}
	deadline := w.clock.Now().Add(startTimeout)
	for {
		err := w.plane.get(ctx, "/readyz", nil)
		if err == nil {
			w.progress("  tulle serve is ready")
			return nil
		}
		if ended := process.alive(); ended != nil {
			return ended
		}
		if w.clock.Now().After(deadline) {
			return fmt.Errorf("tulle serve does not get ready: %w%s", err, process.lastWords())
		}
		<-w.clock.After(20 * time.Millisecond)
	}
}

// get reads a page of the control plane, JSON into v if v is not nil.
func (c *controlPlane) get(ctx context.Context, page string, v any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://tulle"+page, http.NoBody)
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return fmt.Errorf("control plane: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("control plane: %s: %s", page, resp.Status)
	}
	if v == nil {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(v); err != nil {
		return fmt.Errorf("control plane: %s: %w", page, err)
	}
	return nil
}

// proxyStatus is the part of /debug/proxies that matters here.
type proxyStatus struct {
	Proxy struct{ NodeID string }
	Types []struct {
		TypeURL          string
		Pending, Unacked int
		LastNack         string
		Resources        []struct {
			Name, Version string
			Acked         bool
		}
	}
}

// delivery is what all proxies have at one time.
type delivery struct {
	proxies  int
	versions string // of every resource of every proxy
	idle     bool   // everything was acknowledged
	refused  string // by whom and why, if a proxy refuses something
}

func (w *world) versions(ctx context.Context) (delivery, error) {
	if w.plane == nil {
		return delivery{}, nil
	}
	var all []proxyStatus
	if err := w.plane.get(ctx, "/debug/proxies", &all); err != nil {
		return delivery{}, errors.Join(err, w.plane.process.alive())
	}
	d := delivery{proxies: len(all), idle: true}
	var words []string
	for _, p := range all {
		for _, t := range p.Types {
			d.idle = d.idle && t.Pending == 0 && t.Unacked == 0
			if t.LastNack != "" {
				d.refused = fmt.Sprintf("the proxy of %s refuses its configuration: %s", p.Proxy.NodeID, t.LastNack)
			}
			for _, r := range t.Resources {
				d.idle = d.idle && r.Acked
				words = append(words, p.Proxy.NodeID+" "+t.TypeURL+" "+r.Name+" "+r.Version)
			}
		}
	}
	slices.Sort(words)
	d.versions = strings.Join(words, "\n")
	return d, nil
}

// proxies is how many there are to be.
func (w *world) proxies() int {
	n := 0
	for _, p := range w.pods {
		if p.agent != nil {
			n++
		}
	}
	return n
}

// watch follows deliveries until nothing moves any more.
type watch struct {
	wanted   int // proxies
	before   delivery
	mustMove bool

	last     delivery
	lastMove time.Time
	moved    bool
}

// see takes the delivery of one moment, and says whether all has been quiet long enough.
func (w *watch) see(now delivery, at time.Time) (settled bool) {
	complete := now.idle && now.proxies == w.wanted
	if now.versions != w.last.versions || !complete || !w.last.idle {
		w.lastMove = at
		w.moved = w.moved || now.versions != w.before.versions
	}
	w.last = now
	return complete && (w.moved || !w.mustMove) && at.Sub(w.lastMove) >= quiet
}

// settle waits until every proxy has acknowledged everything and nothing moves any more, and returns when the last
// acknowledgement came. mustMove also waits for something to be different from before.
func (w *world) settle(ctx context.Context, before delivery, mustMove bool) (time.Time, error) {
	began := w.clock.Now()
	seen := &watch{wanted: w.proxies(), before: before, mustMove: mustMove, last: before, lastMove: began}
	for {
		now, err := w.versions(ctx)
		if err != nil {
			return time.Time{}, err
		}
		at := w.clock.Now()
		switch settled := seen.see(now, at); {
		case now.refused != "":
			return time.Time{}, errors.New(now.refused)
		case settled:
			return seen.lastMove, nil
		case at.Sub(began) > settleTimeout:
			return time.Time{}, fmt.Errorf("the proxies did not take the change over within %s: %d of %d connected, all acknowledged: %t%s",
				settleTimeout, now.proxies, seen.wanted, now.idle, w.plane.process.lastWords())
		}
		select {
		case <-ctx.Done():
			return time.Time{}, ctx.Err()
		case <-w.clock.After(pollEvery):
		}
	}
}
