// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/tulle-mesh/tulle/internal/admission"
)

func TestRequestsOfTheAPIServerWaitForTheFirstReadButConversionsDoNot(t *testing.T) {
	t.Parallel()
	read := make(chan struct{})
	handler := whenRead(read, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) }))
	ask := func(ctx context.Context, path string) int {
		answer := httptest.NewRecorder()
		handler.ServeHTTP(answer, httptest.NewRequestWithContext(ctx, http.MethodPost, path, http.NoBody))
		return answer.Code
	}
	if code := ask(t.Context(), admission.ConvertPath); code != http.StatusTeapot {
		t.Errorf("a conversion before the first read: %d", code)
	}
	given, cancel := context.WithCancel(t.Context())
	cancel()
	if code := ask(given, "/mutate-v1-pod"); code != http.StatusServiceUnavailable {
		t.Errorf("a request that was given up before the first read: %d", code)
	}
	waits := make(chan int, 1)
	go func() { waits <- ask(t.Context(), "/mutate-v1-pod") }()
	close(read)
	if code := <-waits; code != http.StatusTeapot {
		t.Errorf("a request that waited for the first read: %d", code)
	}
}
