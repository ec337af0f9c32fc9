// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cni

import (
	"encoding/pem"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

func TestPluginStaysWhileItsDaemonSetDoes(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		code int
		body string
		want bool
	}{
		"the DaemonSet goes on":                  {http.StatusOK, `{"metadata": {"name": "appmesh-cni"}}`, true},
		"the DaemonSet is being deleted":         {http.StatusOK, `{"metadata": {"deletionTimestamp": "2026-01-02T03:04:05Z"}}`, false},
		"the DaemonSet is gone":                  {http.StatusNotFound, `{}`, false},
		"its role is gone too":                   {http.StatusForbidden, `{}`, false},
		"its account is gone too":                {http.StatusUnauthorized, `{}`, false},
		"the API server has troubles of its own": {http.StatusInternalServerError, `{}`, true},
		"the API server's answer makes no sense": {http.StatusOK, `<html>`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if got := r.URL.Path + " " + r.Header.Get("Authorization"); got != "/apis/apps/v1/namespaces/appmesh-system/daemonsets/appmesh-cni Bearer secret" {
					t.Errorf("asked for %s", got)
				}
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			d := DaemonSet{
				Namespace: "appmesh-system", Name: "appmesh-cni", Server: strings.TrimPrefix(server.URL, "https://"), Credentials: t.TempDir(),
				Logger: slog.New(slog.DiscardHandler),
			}
			write(t, filepath.Join(d.Credentials, "token"), "secret\n")
			write(t, filepath.Join(d.Credentials, "ca.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})))
			if got := d.Wanted(t.Context()); got != c.want {
				t.Errorf("wanted %v, want %v", got, c.want)
			}
		})
	}
}
