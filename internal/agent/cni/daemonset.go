// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cni

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// DaemonSet is the one whose pods install the plugin: while it exists, the next pod follows the one that ends.
type DaemonSet struct {
	Namespace, Name string
	// Server is the API server's address, host:port.
	Server string
	// Credentials is the folder of the pod's ServiceAccount: ca.crt and token.
	Credentials string
	Logger      *slog.Logger
}

// askFor is how long the API server may take; the pod is ending, and has 30 seconds.
const askFor = 10 * time.Second

// Wanted asks the API server whether the DaemonSet is there and is not being deleted. A server that does not answer leaves things as they are: the plugin works
// by itself, and touches no pod that does not ask for it. One that no longer knows this pod's account, or lets it read nothing, means that all is being removed.
func (d DaemonSet) Wanted(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	wanted, err := d.ask(ctx)
	if err != nil {
		d.Logger.Warn("cannot tell whether the plugin is still wanted, so it stays; 'tulle-agent cni uninstall' takes it out", "error", err)
		return true
	}
	return wanted
}

func (d DaemonSet) ask(ctx context.Context) (bool, error) {
	authority, err := os.ReadFile(filepath.Join(d.Credentials, "ca.crt"))
	if err != nil {
		return false, err
	}
	token, err := os.ReadFile(filepath.Join(d.Credentials, "token"))
	if err != nil {
		return false, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority) {
		return false, errors.New("ca.crt holds no certificate")
	}
	url := fmt.Sprintf("https://%s/apis/apps/v1/namespaces/%s/daemonsets/%s", d.Server, d.Namespace, d.Name)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return false, err
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}}
	response, err := client.Do(request)
	if err != nil {
		return false, err
	}
	defer func() { _ = response.Body.Close() }()
	switch response.StatusCode {
	case http.StatusOK:
		var found struct {
			Metadata struct{ DeletionTimestamp *time.Time }
		}
		err := json.NewDecoder(response.Body).Decode(&found)
		return found.Metadata.DeletionTimestamp == nil, err
	case http.StatusNotFound, http.StatusForbidden, http.StatusUnauthorized:
		return false, nil
	default:
		return false, fmt.Errorf("the API server answers %s", response.Status)
	}
}
