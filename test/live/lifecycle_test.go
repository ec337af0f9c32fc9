// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package live_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestNoRequestIsLost ends and restarts what a mesh is made of while requests run, with no retries to help.
func TestNoRequestIsLost(t *testing.T) {
	s := newSite(t, map[string]string{
		"00-mesh.yaml":     meshOf("DROP_ALL"),
		"10-web.yaml":      nodeOf("web", plain, backends("api")),
		"20-nodes.yaml":    docs(nodeOf("api", plain), nodeOf("other", plain)),
		"30-services.yaml": routed("api", httpMapping, httpRoute("all", 1, "{prefix: /}", noRetries, "api 1")),
	})
	named := func(name string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/long" {
				<-time.After(2 * time.Second)
			}
			_, _ = io.WriteString(w, name)
		}
	}
	a, b := s.pod("a").serve(8080, named("a")), s.pod("b").serve(8080, named("b"))
	other := s.pod("other").serve(8080, named("other"))
	s.service("api", 8080, a, b)
	s.service("other", 8080, other)
	a.sidecar("api", 8080)
	b.sidecar("api", 8080)
	web := s.pod("web").sidecar("web", 8080)
	s.settle()
	c := web.client(false, false)

	t.Run("the control plane is killed and comes back", func(t *testing.T) {
		l := startLoad(3, func() answer { return call(c, "api", "/") })
		l.more(s, 200)
		s.controlPlane.kill()
		l.more(s, 500)
		s.startControlPlane()
		s.eventually("all proxies are back", func() bool {
			body, err := s.get("/debug/proxies")
			return err == nil && strings.Count(string(body), `"nodeId"`) == 3
		})
		s.settle()
		l.more(s, 200)
		s.write("30-services.yaml", routed("api", httpMapping, httpRoute("all", 1, "{prefix: /}", noRetries, "api 1", "other 1")))
		s.eventually("a change after the return", func() bool {
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.seen["200 other"] > 0
		})
		s.write("30-services.yaml", routed("api", httpMapping, httpRoute("all", 1, "{prefix: /}", noRetries, "api 1")))
		l.more(s, 200)
		l.end(t)
	})
	t.Run("a pod leaves as Kubernetes takes it out", func(t *testing.T) {
		l := startLoad(3, func() answer { return call(c, "api", "/") })
		l.more(s, 200)
		long := make(chan answer, 8)
		for range cap(long) {
			go func() { long <- call(c, "api", "/long") }()
		}
		l.more(s, 50)
		// The endpoint is marked and the agent is told to end at the same time, with nothing in between.
		s.slices("api", 8080, "{ready: true, serving: true, terminating: false}", []*pod{b}, []*pod{a})
		if code := a.agent.terminate(t); code != 0 {
			t.Errorf("the agent ended with code %d", code)
		}
		s.service("api", 8080, b)
		a.close()
		for range cap(long) {
			if got := <-long; got.status != http.StatusOK {
				t.Errorf("a request that was in flight: %s", got)
			}
		}
		l.more(s, 200)
		l.end(t)
	})
}
