// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"time"
)

// A color answers every request with its colour. It can be told to fail, and to take its time.
type color struct {
	name string
	host string
	// faulty is the share of requests that get a 503.
	faulty float64
	// delay is how long every answer takes.
	delay time.Duration
	// broken, once /color/fault was asked for, makes every answer a 500, until /color/recover.
	broken atomic.Bool
}

// newColor is the server that COLOR and TIMEOUT_VALUE (seconds) describe.
func newColor(faulty float64) *color {
	delay, _ := seconds("TIMEOUT_VALUE") // a manifest that holds no number asks for no delay
	host, _ := os.Hostname()
	return &color{name: setting("no color", "COLOR"), host: host, faulty: faulty, delay: delay}
}

// ServeHTTP answers. The header "answered-by" names the pod.
func (c *color) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Answered-By", c.host)
	w.Header().Set("Answered-Protocol", r.Proto)
	switch {
	case strings.HasSuffix(r.URL.Path, "/fault"):
		c.broken.Store(true)
		_, _ = io.WriteString(w, c.host+" will fail")
		return
	case strings.HasSuffix(r.URL.Path, "/recover"):
		c.broken.Store(false)
		_, _ = io.WriteString(w, c.host+" will answer")
		return
	case c.broken.Load():
		http.Error(w, "told to fail", http.StatusInternalServerError)
		return
	case rand.Float64() < c.faulty: //nolint:gosec // nothing secret hangs on it
		http.Error(w, "fails now and then", http.StatusServiceUnavailable)
		return
	}
	select {
	case <-time.After(c.delay):
		_, _ = io.WriteString(w, c.name)
	case <-r.Context().Done():
	}
}
