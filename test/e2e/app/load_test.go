// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestALoadCountsEveryAnswerAndEveryFault(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case asked.Add(1)%10 == 0:
			http.Error(w, "now and then", http.StatusServiceUnavailable)
		case r.Method == http.MethodPost:
			_, _ = w.Write([]byte("kept"))
		default:
			_, _ = w.Write([]byte("read"))
		}
	}))
	t.Cleanup(server.Close)
	var out bytes.Buffer
	if err := runLoad(t.Context(), []string{"-rate", "500", "-for", "400ms", "-methods", "GET,POST", server.URL}, strings.NewReader(""), &out); err != nil {
		t.Fatal(err)
	}
	var got report
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	n := int(asked.Load())
	if n < 20 {
		t.Fatalf("only %d requests arrived", n)
	}
	bodies, statuses := 0, 0
	for _, count := range got.Bodies {
		bodies += count
	}
	for _, count := range got.Statuses {
		statuses += count
	}
	want := []int{n, n / 10, n, n - n/10, min(n/10, failuresKept)}
	if diff := cmp.Diff(want, []int{got.Requests, got.Failures, statuses, bodies, len(got.First)}); diff != "" {
		t.Errorf("requests, failures, statuses, bodies, first failures (-want +got):\n%s\n%s", diff, out.String())
	}
}

func TestALoadThatReachesNobodyFailsAll(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := runLoad(t.Context(), []string{"-rate", "100", "-for", "100ms", "http://127.0.0.1:1/"}, strings.NewReader(""), &out); err != nil {
		t.Fatal(err)
	}
	var got report
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Requests == 0 || got.Failures != got.Requests || got.Statuses["GET no answer"] != got.Requests {
		t.Errorf("got %s", out.String())
	}
}

func TestALoadEndsWhenItsInputDoes(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := runLoad(t.Context(), []string{"-rate", "10", "-for", "1h", "-until-eof", "http://127.0.0.1:1/"}, strings.NewReader(""), &out); err != nil {
		t.Fatal(err)
	}
}
