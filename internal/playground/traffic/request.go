// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package traffic

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strings"
	"syscall"
	"time"
)

// What can become of a connection that brings no response.
const (
	Refused  = "refused" // nobody accepted it
	Closed   = "closed"  // it was accepted, then closed or reset
	TimedOut = "timed out"
	Failed   = "failed" // anything else; Result.Error says what
)

// maxBody is how much of a response is looked at.
const maxBody = 64 << 10

// timeout is how long one request may take.
const timeout = 10 * time.Second

// Result is what came of a request.
type Result struct {
	// Status, Body and Server are the response's, if there was one.
	Status int    `json:"status,omitempty"`
	Body   string `json:"body,omitempty"`
	Server string `json:"server,omitempty"`
	// Connection is one of the constants above if there was no response, and Error the reason.
	Connection string `json:"connection,omitempty"`
	Error      string `json:"error,omitempty"`
}

// String is the result in one line.
func (r Result) String() string {
	if r.Status == 0 {
		return "connection " + r.Connection
	}
	text := fmt.Sprintf("%d %s", r.Status, r.Body)
	if r.Server != "" {
		text += " (server: " + r.Server + ")"
	}
	return strings.Join(strings.Fields(text), " ")
}

// Get sends one request on a connection of its own.
func Get(ctx context.Context, url string) Result {
	client := newClient(1, false)
	defer client.CloseIdleConnections()
	return get(ctx, client, url)
}

func newClient(connections int, keep bool) *http.Client {
	return &http.Client{
		Timeout: timeout,
		Transport: &http.Transport{
			DialContext:         (&net.Dialer{Timeout: timeout}).DialContext,
			DisableKeepAlives:   !keep,
			DisableCompression:  true,
			MaxIdleConnsPerHost: connections,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

func get(ctx context.Context, client *http.Client, url string) Result {
	connected := false
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(httptrace.GotConnInfo) { connected = true }})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return Result{Connection: Failed, Error: err.Error()}
	}
	resp, err := client.Do(req)
	if err != nil {
		return Result{Connection: fate(err, connected), Error: err.Error()}
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return Result{Connection: fate(err, true), Error: err.Error()}
	}
	return Result{Status: resp.StatusCode, Body: string(body), Server: resp.Header.Get("Server")}
}

// fate sorts the errors of connections.
func fate(err error, connected bool) string {
	if slow, ok := errors.AsType[net.Error](err); ok && slow.Timeout() {
		return TimedOut
	}
	switch {
	case connected:
		return Closed
	case errors.Is(err, syscall.ECONNREFUSED):
		return Refused
	default:
		return Failed
	}
}
