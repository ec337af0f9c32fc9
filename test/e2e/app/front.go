// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// A front passes every request on to one other server and answers with what that says.
type front struct {
	host   string
	client *http.Client
}

// newFront is the server that COLOR_HOST (or what the walkthroughs call it else) describes. It speaks HTTP/2 to the other one where told so.
func newFront(http2 bool) *front {
	transport := &http.Transport{MaxIdleConnsPerHost: 100, Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(!http2)
	transport.Protocols.SetUnencryptedHTTP2(http2)
	return &front{
		host:   setting("", "COLOR_HOST", "COLOR_SERVICE_ENDPOINT", "HOST"),
		client: &http.Client{Transport: transport, Timeout: 2 * time.Minute},
	}
}

// ServeHTTP asks for the same path with the same method and headers. No answer at all is a 502 that says why.
func (f *front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	onward, err := http.NewRequestWithContext(r.Context(), r.Method, "http://"+f.host+r.URL.RequestURI(), r.Body) //nolint:gosec // to pass requests on is what it is for
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	for name, values := range r.Header {
		if !strings.EqualFold(name, "Connection") {
			onward.Header[name] = values
		}
	}
	answer, err := f.client.Do(onward) //nolint:gosec // as above
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer func() { _ = answer.Body.Close() }()
	for _, name := range []string{"Answered-By", "Answered-Protocol"} {
		w.Header().Set(name, answer.Header.Get(name))
	}
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

// serveBand is the DJ app of the metrics walkthroughs: it answers with RESPONSES, a list in JSON, or with the answers of the servers in BACKENDS.
func serveBand(ctx context.Context) error {
	var responses, backends []string
	if err := json.Unmarshal([]byte(setting("[]", "RESPONSES")), &responses); err != nil {
		return fmt.Errorf("RESPONSES: %w", err)
	}
	if err := json.Unmarshal([]byte(setting("[]", "BACKENDS")), &backends); err != nil {
		return fmt.Errorf("BACKENDS: %w", err)
	}
	client := newFront(false).client
	return serve(ctx, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all := responses
		for _, backend := range backends {
			answer, err := ask(r.Context(), client, "http://"+backend+"/")
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadGateway)
				return
			}
			all = append(all, answer...)
		}
		_ = json.NewEncoder(w).Encode(all)
	}))
}

// ask gets a list in JSON.
func ask(ctx context.Context, client *http.Client, url string) ([]string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", url, answer.Status)
	}
	var list []string
	err = json.NewDecoder(answer.Body).Decode(&list)
	return list, err
}
