// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package traffic

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tulle-mesh/tulle/internal/clock"
)

func TestGet(t *testing.T) {
	t.Parallel()
	answering := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Server", "envoy")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "gone")
	}))
	t.Cleanup(answering.Close)
	redirecting := httptest.NewServer(http.RedirectHandler("/elsewhere", http.StatusFound))
	t.Cleanup(redirecting.Close)
	for name, tc := range map[string]struct {
		url  string
		want Result
	}{
		"a response is told as it is":      {answering.URL, Result{Status: 404, Body: "gone", Server: "envoy"}},
		"a redirect is not followed":       {redirecting.URL, Result{Status: 302, Body: "<a href=\"/elsewhere\">Found</a>.\n\n"}},
		"nobody there":                     {"http://" + closedPort(t), Result{Connection: Refused}},
		"accepted, then closed":            {"http://" + hangingUp(t, false), Result{Connection: Closed}},
		"accepted, then reset":             {"http://" + hangingUp(t, true), Result{Connection: Closed}},
		"a name that does not exist fails": {"http://no-such-name.invalid/", Result{Connection: Failed}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := Get(t.Context(), tc.url)
			if (got.Error != "") != (tc.want.Connection != "") {
				t.Errorf("error %q", got.Error)
			}
			if diff := cmp.Diff(tc.want, got, cmpopts.IgnoreFields(Result{}, "Error")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func closedPort(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return l.Addr().String()
}

// hangingUp accepts every connection and ends it at once.
func hangingUp(t *testing.T, reset bool) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if tcp, ok := c.(*net.TCPConn); ok && reset {
				_ = tcp.SetLinger(0)
			}
			_ = c.Close()
		}
	}()
	return l.Addr().String()
}

func TestServe(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	read, write := io.Pipe()
	address := closedPort(t)
	ended := make(chan error, 1)
	go func() { ended <- Serve(ctx, address, "DJ Reporting for duty!", write) }()
	if line, err := bufio.NewReader(read).ReadString('\n'); line != Ready {
		t.Fatalf("it said %q, %v", line, err)
	}
	for path, want := range map[string]Result{
		"/":     {Status: 200, Body: "DJ Reporting for duty!"},
		"/ping": {Status: 200, Body: "pong"},
		"/else": {Status: 404, Body: "404 page not found\n"},
	} {
		if diff := cmp.Diff(want, Get(t.Context(), "http://"+address+path)); diff != "" {
			t.Errorf("%s: %s", path, diff)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestLoad drives the load as the playground does: responses to requests of an epoch are counted in it, whatever the
// target answers meanwhile.
func TestLoad(t *testing.T) {
	t.Parallel()
	var second atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if second.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "one")
	}))
	t.Cleanup(server.Close)
	commandsRead, commands := io.Pipe()
	answers, answersWrite := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		ended <- Load(t.Context(), Plan{Targets: map[string]string{"jazz": server.URL}, Rate: 1000}, clock.Real{}, commandsRead, answersWrite)
	}()
	lines := json.NewDecoder(answers)
	ask := func(command string) Report {
		t.Helper()
		if _, err := io.WriteString(commands, command+"\n"); err != nil {
			t.Fatal(err)
		}
		var r Report
		if err := lines.Decode(&r); err != nil {
			t.Fatal(err)
		}
		return r
	}
	until := func(epoch int, enough func(Tally) bool) {
		t.Helper()
		for tally := ask(CommandReport).Since(epoch, "jazz"); !enough(tally); tally = ask(CommandReport).Since(epoch, "jazz") {
		}
	}
	until(0, func(t Tally) bool { return t.Bodies["one"] >= 20 })
	second.Store(true)
	epoch := ask(CommandEpoch).Epoch
	until(epoch, func(t Tally) bool { return t.Requests >= 20 })
	if err := commands.Close(); err != nil {
		t.Fatal(err)
	}
	var last Report
	if err := lines.Decode(&last); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	since := last.Since(epoch, "jazz")
	if len(since.Bodies) != 0 || since.Failed() != since.Requests || since.Failures["503"] != since.Requests {
		t.Errorf("since the epoch: %+v", since)
	}
	if all := last.All(); all.Requests != all.Failed()+all.Bodies["one"] || all.Mean() <= 0 || all.Slowest < all.Mean() {
		t.Errorf("all: %+v", all)
	}
}

func TestLoadRefusesAnUnknownCommand(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	go func() { _, _ = io.WriteString(write, "dance\n") }()
	if err := Load(t.Context(), Plan{Rate: 1}, clock.Real{}, read, io.Discard); err == nil {
		t.Error("no error")
	}
}
