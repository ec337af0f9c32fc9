// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package live_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tulle-mesh/tulle/internal/clock"
)

// echoUpgraded takes a connection over, as a websocket server does, and sends back each line.
func echoUpgraded(w http.ResponseWriter, _ *http.Request) {
	conn, stream, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer func() { _ = conn.Close() }()
	_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	for {
		line, err := stream.ReadString('\n')
		if err != nil {
			return
		}
		if _, err := io.WriteString(conn, "echo "+line); err != nil {
			return
		}
	}
}

// testUpgrade opens a websocket and exchanges lines on it, longer than the route's requests may take.
func testUpgrade(t *testing.T, from *pod, service string) {
	t.Helper()
	conn, err := from.dial(t.Context(), net.JoinHostPort(from.s.address(service, false).String(), "8080"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(deadline()); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: %s.shop.svc.cluster.local:8080\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", service)
	if err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(conn)
	response, err := http.ReadResponse(r, nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = response.Body.Close() // what follows is not its body
	if response.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("the upgrade is answered by %s", response.Status)
	}
	for _, line := range []string{"one\n", "two\n"} {
		if _, err := io.WriteString(conn, line); err != nil {
			t.Fatal(err)
		}
		if got, err := r.ReadString('\n'); got != "echo "+line {
			t.Fatalf("got %q, %v", got, err)
		}
	}
}

// deadline is patience's end.
func deadline() time.Time { return clock.Real{}.Now().Add(patience) }

// file reads a file that a program wrote inside the pod, "" where there is none.
func (p *pod) file(path string) string {
	text, err := os.ReadFile(filepath.Join(fmt.Sprintf("/proc/%d/root", p.box.PID()), path))
	if err != nil {
		return ""
	}
	return strings.ToValidUTF8(string(text), "")
}
