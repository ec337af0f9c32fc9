// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package live_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// checked is a listener with an active health check of so many milliseconds.
func checked(interval int) string {
	return fmt.Sprintf("{portMapping: {port: 8080, protocol: http}, healthCheck: {protocol: http, path: /ping, healthyThreshold: 2, unhealthyThreshold: 2, timeoutMillis: 2000, intervalMillis: %d}}", interval)
}

// TestEndpointsChangeUnderLoad changes what stands behind a service whose endpoints are checked, while requests run, and no request may fail.
func TestEndpointsChangeUnderLoad(t *testing.T) {
	s := newSite(t, map[string]string{
		"00-mesh.yaml":     meshOf("DROP_ALL"),
		"10-web.yaml":      nodeOf("web", plain, backends("api")),
		"20-nodes.yaml":    docs(nodeOf("api", checked(5000)), nodeOf("fresh", checked(5000))),
		"30-services.yaml": routed("api", httpMapping, httpRoute("all", 1, "{prefix: /}", noRetries, "api 1")),
	})
	pods := make([]*pod, 4)
	for i := range pods {
		pods[i] = s.pod(fmt.Sprint("api-", i)).says(8080)
	}
	fresh := s.pod("fresh").says(8080)
	s.service("api", 8080, pods...)
	s.service("fresh", 8080, fresh)
	web := s.pod("web").sidecar("web", 8080)
	c := web.client(false, false)
	s.eventually("the first checks", func() bool { return call(c, "api", "/").status == http.StatusOK })

	l := startLoad(3, func() answer { return call(c, "api", "/") })
	l.more(s, 200)
	t.Log("a check is changed, which replaces the cluster")
	s.write("20-nodes.yaml", docs(nodeOf("api", checked(6000)), nodeOf("fresh", checked(5000))))
	l.more(s, 300)

	t.Log("four endpoints become one, and the three end as soon as nothing comes any more")
	s.service("api", 8080, pods[0])
	others := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.seen["200 api-1"] + l.seen["200 api-2"] + l.seen["200 api-3"]
	}
	s.eventually("removed endpoints get nothing", func() bool {
		before := others()
		l.more(s, 100)
		return others() == before
	})
	for _, p := range pods[1:] {
		p.close()
	}
	l.more(s, 300)

	t.Log("all requests move to a node that was not there, whose cluster has to warm")
	s.write("30-services.yaml", routed("api", httpMapping, httpRoute("all", 1, "{prefix: /}", noRetries, "fresh 1")))
	s.eventually("the new node answers", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.seen["200 fresh"] > 0
	})
	l.more(s, 300)
	l.end(t)
}

// noRetries makes failures visible.
const noRetries = "retryPolicy: {maxRetries: 0, perRetryTimeout: {unit: s, value: 15}, httpRetryEvents: [server-error]}"

// TestProtection has endpoints that fail and an application that can take one request at a time.
func TestProtection(t *testing.T) {
	s := newSite(t, map[string]string{
		"00-mesh.yaml": meshOf("DROP_ALL"),
		"10-web.yaml":  nodeOf("web", plain, backends("shaky", "narrow")),
		"20-nodes.yaml": docs(
			nodeOf("shaky", "{portMapping: {port: 8080, protocol: http}, outlierDetection: {maxServerErrors: 5, interval: {unit: s, value: 1}, baseEjectionDuration: {unit: s, value: 60}, maxEjectionPercent: 50}}"),
			nodeOf("narrow", "{portMapping: {port: 8080, protocol: http}, connectionPool: {http: {maxConnections: 1, maxPendingRequests: 1}}}"),
		),
		"30-services.yaml": docs(
			routed("shaky", httpMapping, httpRoute("all", 1, "{prefix: /}", noRetries, "shaky 1")),
			routed("narrow", httpMapping, httpRoute("all", 1, "{prefix: /}", noRetries, "narrow 1")),
		),
	})
	var failing atomic.Bool
	pods := make([]*pod, 4)
	for i := range pods {
		pods[i] = s.pod(fmt.Sprint("shaky-", i)).serve(8080, func(w http.ResponseWriter, _ *http.Request) {
			if i == 0 && failing.Load() {
				w.WriteHeader(http.StatusInternalServerError)
			}
			_, _ = fmt.Fprint(w, "shaky-", i)
		})
	}
	s.service("shaky", 8080, pods...)
	begun, end := make(chan struct{}, 32), make(chan struct{})
	narrow := s.pod("narrow").serve(8080, func(w http.ResponseWriter, _ *http.Request) {
		begun <- struct{}{}
		<-end
		_, _ = io.WriteString(w, "narrow")
	})
	s.service("narrow", 8080, narrow)
	narrow.sidecar("narrow", 8080)
	web := s.pod("web").sidecar("web", 8080)
	s.settle()
	c := web.client(false, false)

	t.Run("outlier detection takes an endpoint out that fails", func(*testing.T) {
		failing.Store(true)
		run := 0
		s.eventually("two hundred requests in a row that do not fail", func() bool {
			for range 50 {
				if call(c, "shaky", "/").status != http.StatusOK {
					run = 0
					return false
				}
				run++
			}
			return run >= 200
		})
	})
	t.Run("a connection pool refuses what is over its limit", func(t *testing.T) {
		// One runs, one waits, and the others are too many.
		var wait sync.WaitGroup
		answers := make(chan answer, 8)
		send := func() { answers <- call(c, "narrow", "/") }
		wait.Go(send)
		select {
		case <-begun:
		case <-time.After(patience):
			t.Fatal("no request reached the application")
		}
		for range cap(answers) - 1 {
			wait.Go(send)
		}
		refused := 0
		for range cap(answers) - 2 {
			if a := <-answers; a.status == http.StatusServiceUnavailable && strings.Contains(a.body, "overflow") {
				refused++
			} else {
				t.Errorf("got %s", a)
			}
		}
		close(end)
		wait.Wait()
		for range 2 {
			if a := <-answers; a.String() != "200 narrow" {
				t.Errorf("a request within the limit: %s", a)
			}
		}
		if refused != cap(answers)-2 {
			t.Errorf("%d of %d were refused, want all but one that runs and one that waits", refused, cap(answers))
		}
	})
}
