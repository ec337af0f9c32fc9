// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package live_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/tulle-mesh/tulle/internal/clock"
)

// stall is how long a server that speaks first may be silent. A proxy that waits for the client to speak first would wait for 15 s.
const stall = 10 * time.Second

// TestTCP has three backends on one port: two speak TCP and are told apart by the address of their Service, one speaks HTTP.
func TestTCP(t *testing.T) {
	const tcp = "{portMapping: {port: 3306, protocol: tcp}}"
	s := newSite(t, map[string]string{
		"00-mesh.yaml":  meshOf("DROP_ALL"),
		"10-web.yaml":   nodeOf("web", plain, backends("db-a", "db-b", "site", "split")),
		"20-nodes.yaml": docs(nodeOf("db-a", tcp), nodeOf("db-b", tcp), nodeOf("site", "{portMapping: {port: 3306, protocol: http}}")),
		"30-services.yaml": docs(provided("db-a", "db-a"), provided("db-b", "db-b"), provided("site", "site"),
			routed("split", "{port: 3307, protocol: tcp}", "{name: all, tcpRoute: {action: {weightedTargets: ["+weighted([]string{"db-a 1", "db-b 1"})+"]}}}")),
	})
	a, b := s.pod("db-a").greets(3306), s.pod("db-b").greets(3306)
	site := s.pod("site").says(3306)
	s.service("db-a", 3306, a)
	s.service("db-b", 3306, b)
	s.service("site", 3306, site)
	s.service("split", 3307)
	a.sidecar("db-a", 3306)
	web := s.pod("web").sidecar("web", 8080)
	s.settle()

	for _, name := range []string{"db-a", "db-b"} {
		t.Run("a server that speaks first: "+name, func(t *testing.T) {
			for range 10 {
				if got := greeting(web, net.JoinHostPort(s.address(name, false).String(), "3306"), stall); got != name {
					t.Fatalf("greeted by %q", got)
				}
			}
		})
	}
	t.Run("HTTP on the port of two TCP services", func(t *testing.T) {
		if got := request(web.client(false, false), "GET", "http://site.shop.svc.cluster.local:3306/"); got.String() != "200 site" {
			t.Errorf("got %s", got)
		}
	})
	t.Run("weights", func(t *testing.T) {
		share(t, 400, func() answer {
			name := greeting(web, net.JoinHostPort(s.address("split", false).String(), "3307"), stall)
			return answer{status: 200, body: name}
		}, map[string]int{"200 db-a": 1, "200 db-b": 1})
	})
	t.Run("a port that no backend uses is closed", func(t *testing.T) {
		if got := greeting(web, net.JoinHostPort(b.address(false), "3309"), stall); got != "" {
			t.Errorf("greeted by %q", got)
		}
	})
	t.Run("a connection that is open outlives a change of addresses", func(t *testing.T) {
		conn, err := web.dial(t.Context(), net.JoinHostPort(s.address("db-a", false).String(), "3306"))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = conn.Close() }()
		if err := conn.SetDeadline(deadline()); err != nil {
			t.Fatal(err)
		}
		r := bufio.NewReader(conn)
		if line, err := r.ReadString('\n'); line != "db-a\n" {
			t.Fatalf("greeted by %q, %v", line, err)
		}
		s.write("10-web.yaml", nodeOf("web", plain, backends("db-a", "db-b", "site", "split", "late")))
		s.write("31-late.yaml", docs(nodeOf("late", tcp), provided("late", "late")))
		s.service("late", 3306, b)
		s.eventually("the new service", func() bool {
			return greeting(web, net.JoinHostPort(s.address("late", false).String(), "3306"), time.Second) == "db-b"
		})
		if _, err := io.WriteString(conn, "still there?\n"); err != nil {
			t.Fatal(err)
		}
		if line, err := r.ReadString('\n'); line != "db-a still there?\n" {
			t.Errorf("the connection was cut: %q, %v", line, err)
		}
	})
	if bad := s.errors(); len(bad) > 0 {
		t.Errorf("findings: %v", bad)
	}
}

// greets is a TCP application that speaks first, as databases do, and sends back each line.
func (p *pod) greets(port int) *pod {
	p.s.t.Helper()
	return p.tcp(port, func(conn net.Conn) {
		_, _ = fmt.Fprintln(conn, p.name)
		r := bufio.NewReader(conn)
		for {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			_, _ = io.WriteString(conn, p.name+" "+line)
		}
	})
}

// greeting connects and returns the first line that the server says, "" if the connection ends without. To say nothing for longer than within is a stall.
func greeting(from *pod, address string, within time.Duration) string {
	conn, err := from.dial(from.s.t.Context(), address)
	if err != nil {
		return ""
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(clock.Real{}.Now().Add(within)); err != nil {
		return err.Error()
	}
	line, err := bufio.NewReader(conn).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			return "a stall on " + strconv.Quote(address)
		}
		return ""
	}
	if line == "" {
		return ""
	}
	return line[:len(line)-1]
}
