// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// admin speaks to Envoy's administration.
type admin struct {
	base   string
	client *http.Client
}

func newAdmin(port uint16) *admin {
	return &admin{
		base:   "http://127.0.0.1:" + strconv.Itoa(int(port)),
		client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}},
	}
}

// call returns the status code and the body.
func (a *admin) call(ctx context.Context, method, path string) (int, []byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, nil)
	if err != nil {
		return 0, nil, err
	}
	response, err := a.client.Do(request)
	if err != nil {
		return 0, nil, fmt.Errorf("ask Envoy's administration: %w", err)
	}
	body, err := io.ReadAll(response.Body)
	if closeErr := response.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return 0, nil, fmt.Errorf("read Envoy's answer to %s: %w", path, err)
	}
	return response.StatusCode, body, nil
}

// post does what the path names, and fails unless Envoy agrees.
func (a *admin) post(ctx context.Context, path string) error {
	code, body, err := a.call(ctx, http.MethodPost, path)
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("envoy answers %d to POST %s: %s", code, path, bytes.TrimSpace(body))
	}
	return nil
}

// live returns Envoy's state in its own word, such as LIVE or PRE_INITIALIZING, and whether it is LIVE.
func (a *admin) live(ctx context.Context) (string, bool, error) {
	code, body, err := a.call(ctx, http.MethodGet, "/ready")
	if err != nil {
		return "", false, err
	}
	return string(bytes.TrimSpace(body)), code == http.StatusOK, nil
}

// stats returns the numbers whose names match a regular expression.
func (a *admin) stats(ctx context.Context, filter string) (map[string]int64, error) {
	code, body, err := a.call(ctx, http.MethodGet, "/stats?filter="+url.QueryEscape(filter))
	if err != nil {
		return nil, err
	}
	if code != http.StatusOK {
		return nil, fmt.Errorf("envoy answers %d to GET /stats: %s", code, bytes.TrimSpace(body))
	}
	numbers := map[string]int64{}
	lines := bufio.NewScanner(bytes.NewReader(body))
	for lines.Scan() {
		name, value, found := strings.Cut(lines.Text(), ": ")
		if !found {
			continue
		}
		if n, err := strconv.ParseInt(value, 10, 64); err == nil {
			numbers[name] = n
		}
	}
	return numbers, lines.Err()
}
