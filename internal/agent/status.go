// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// state is what GET /status answers.
type state struct {
	Ready bool `json:"ready"`
	// Reason is empty when ready.
	Reason string `json:"reason,omitempty"`
	// ControlPlaneConnected says whether a stream to the control plane is open.
	ControlPlaneConnected bool `json:"controlPlaneConnected"`
	Draining              bool `json:"draining"`
	// EnvoyStarts counts how often Envoy was started.
	EnvoyStarts int `json:"envoyStarts"`
}

func (a *agent) listenStatus(ctx context.Context) (net.Listener, error) {
	network, where, err := splitStatus(a.config.Status)
	if err != nil {
		return nil, err
	}
	if network == "unix" {
		return listenUnix(ctx, where)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, network, where)
	if err != nil {
		return nil, fmt.Errorf("status address: %w", err)
	}
	return listener, nil
}

// serveStatus answers GET /ready, GET /status and POST /drain until the context ends.
func (a *agent) serveStatus(ctx context.Context, listener net.Listener) error {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, r *http.Request) {
		if err := a.ready(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = io.WriteString(w, "ready\n") // a client that is gone needs no answer
	})
	mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(a.state(r.Context())) // a client that is gone needs no answer
	})
	mux.HandleFunc("POST /drain", func(w http.ResponseWriter, _ *http.Request) {
		// A drain goes on though the one who asked for it is gone.
		a.drain.run(ctx)
		_, _ = io.WriteString(w, "drained\n") // a client that is gone needs no answer
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	stop := context.AfterFunc(ctx, func() { _ = server.Close() })
	defer stop()
	if err := server.Serve(listener); err != nil && !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("status address: %w", err)
	}
	return nil
}

func (a *agent) state(ctx context.Context) state {
	s := state{Draining: a.drain.draining(), EnvoyStarts: a.envoy.startCount()}
	if a.relay != nil {
		s.ControlPlaneConnected = a.relay.Connected()
	}
	if err := a.ready(ctx); err != nil {
		s.Reason = err.Error()
	} else {
		s.Ready = true
	}
	return s
}

// Ready asks the agent at a status address whether it is ready; nil means that it is. wait is how long to ask again while it is not, 0 for once.
func Ready(ctx context.Context, address string, wait time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, max(wait, 5*time.Second))
	defer cancel()
	for {
		err := ask(ctx, address, http.MethodGet, "/ready")
		if err == nil || wait == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("not ready within %s: %w", wait, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// DrainNow tells the agent at a status address to drain Envoy, and returns when that is done. Envoy still runs then.
func DrainNow(ctx context.Context, address string) error {
	return ask(ctx, address, http.MethodPost, "/drain")
}

func ask(ctx context.Context, address, method, path string) error {
	network, where, err := splitStatus(address)
	if err != nil {
		return err
	}
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, where)
		},
	}}
	request, err := http.NewRequestWithContext(ctx, method, "http://tulle-agent"+path, nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("no agent answers at %s: %w", address, err)
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("read the agent's answer: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return errors.New(strings.TrimSpace(string(text)))
	}
	return nil
}
