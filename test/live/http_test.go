// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package live_test

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestHTTP sends requests from web to the services that one control plane configures, by way of two proxies each.
func TestHTTP(t *testing.T) {
	s := newSite(t, map[string]string{
		"00-mesh.yaml": meshOf("DROP_ALL"),
		"10-web.yaml":  nodeOf("web", plain, backends("api", "patient", "impatient", "raw", "quick", "direct", "sealed", "void")),
		"20-nodes.yaml": docs(
			nodeOf("v1", plain, "logging: {accessLog: {file: {path: /tmp/access.txt, format: {text: \"%REQ(:PATH)% %RESPONSE_CODE%\\n\"}}}}"),
			nodeOf("v2", "{portMapping: {port: 8080, protocol: http}, timeout: {http: {perRequest: {unit: ms, value: 300}}}}",
				"logging: {accessLog: {file: {path: /tmp/access.json, format: {json: [{key: path, value: \"%REQ(:PATH)%\"}, {key: code, value: \"%RESPONSE_CODE%\"}]}}}}"),
			nodeOf("closed", "{portMapping: {port: 8080, protocol: http}, tls: {mode: STRICT, certificate: {file: {certificateChain: /c, privateKey: /k}}}}"),
		),
		"30-services.yaml": docs(
			routed("api", httpMapping,
				httpRoute("header", 1, "{prefix: /, headers: [{name: x-want, match: {exact: two}}]}", "", "v2 1"),
				httpRoute("not-header", 2, "{prefix: /inverted, headers: [{name: x-stay, invert: true, match: {prefix: y}}]}", "", "v2 1"),
				httpRoute("path", 3, "{path: {exact: /exact}}", "", "v2 1"),
				httpRoute("regex", 4, "{path: {regex: \"/re/[0-9]+\"}}", "", "v2 1"),
				httpRoute("method", 5, "{prefix: /, method: DELETE}", "", "v2 1"),
				httpRoute("query", 6, "{prefix: /, queryParameters: [{name: v, match: {exact: \"2\"}}]}", "", "v2 1"),
				httpRoute("one", 7, "{prefix: /one}", "", "v1 1"),
				httpRoute("all", 1000, "{prefix: /}", "", "v1 80", "v2 20"),
			),
			routed("patient", httpMapping, httpRoute("all", 1, "{prefix: /}",
				"retryPolicy: {maxRetries: 3, perRetryTimeout: {unit: s, value: 5}, httpRetryEvents: [server-error]}", "v1 1")),
			routed("raw", httpMapping, httpRoute("all", 1, "{prefix: /}",
				"retryPolicy: {maxRetries: 0, perRetryTimeout: {unit: s, value: 5}, httpRetryEvents: [server-error]}", "v1 1")),
			routed("impatient", httpMapping, httpRoute("all", 1, "{prefix: /}", "timeout: {perRequest: {unit: ms, value: 300}}", "v1 1")),
			routed("quick", httpMapping, httpRoute("all", 1, "{prefix: /}", "", "v1 1")),
			provided("direct", "v2"),
			provided("sealed", "closed"),
			routed("void", httpMapping, httpRoute("all", 1, "{prefix: /}", "", "v1 0", "v2 0")),
		),
	})
	app := &flaky{asked: map[string]int{}}
	v1 := s.pod("v1").serve(8080, app.handler("v1"))
	v2 := s.pod("v2").serve(8080, app.handler("v2"))
	closed := s.pod("closed").says(8080)
	stranger := s.pod("stranger").says(8080).says(7070)
	s.service("v1", 8080, v1)
	s.service("v2", 8080, v2)
	s.service("closed", 8080, closed)
	v1.sidecar("v1", 8080)
	v2.sidecar("v2", 8080)
	closed.sidecar("closed", 8080)
	web := s.pod("web").sidecar("web", 8080)
	s.settle()
	c := web.client(false, false)

	t.Run("weights", func(t *testing.T) {
		share(t, 2000, func() answer { return call(c, "api", "/") }, map[string]int{"200 v1": 80, "200 v2": 20})
	})
	t.Run("matches, in order of priority", func(t *testing.T) { testMatches(t, c) })
	t.Run("retries", func(t *testing.T) { testRetries(t, c) })
	t.Run("timeouts", func(t *testing.T) {
		for service, path := range map[string]string{"impatient": "/slow", "direct": "/slow"} {
			if got := call(c, service, path); got.status != http.StatusGatewayTimeout {
				t.Errorf("%s answers %s, want a 504", service, got)
			}
		}
		if got := call(c, "quick", "/slow"); got.status != http.StatusOK {
			t.Errorf("without a timeout of its own a route answers %s, want 200", got)
		}
	})
	t.Run("a route whose weights are all 0 answers 503", func(t *testing.T) {
		if got := call(c, "void", "/"); got.status != http.StatusServiceUnavailable {
			t.Errorf("got %s", got)
		}
	})
	t.Run("websocket", func(t *testing.T) { testUpgrade(t, web, "api") })
	t.Run("access logs", func(*testing.T) {
		call(c, "api", "/one/logged")
		call(c, "api", "/exact")
		s.eventually("the text log", func() bool { return strings.Contains(v1.file("/tmp/access.txt"), "/one/logged 200\n") })
		s.eventually("the JSON log", func() bool {
			text := v2.file("/tmp/access.json")
			return strings.Contains(text, `"path":"/exact"`) && strings.Contains(text, `"code":200`)
		})
	})
	t.Run("TLS that is not served yet is closed, never plain", func(t *testing.T) {
		if got := call(c, "sealed", "/"); got.status != http.StatusServiceUnavailable {
			t.Errorf("a backend whose listener asks for TLS answers %s, want 503", got)
		}
		got := request(stranger.client(false, false), http.MethodGet, "http://"+closed.address(false)+":8080/")
		if got.err == nil {
			t.Errorf("a listener that asks for TLS answers %s in plain text", got)
		}
	})
	t.Run("the egress filter, flipped", func(t *testing.T) { testEgress(t, s, web, stranger) })
}

// flaky fails the first requests of each kind, as its path asks for.
type flaky struct {
	mu    sync.Mutex
	asked map[string]int
}

func (f *flaky) handler(name string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") != "" {
			echoUpgraded(w, r)
			return
		}
		switch parts := strings.Split(r.URL.Path, "/"); parts[1] {
		case "slow":
			select {
			case <-time.After(700 * time.Millisecond):
			case <-r.Context().Done():
			}
		case "fail": // /fail/CODE/TIMES/ID
			times, _ := strconv.Atoi(parts[3])
			f.mu.Lock()
			n := f.asked[r.URL.Path]
			f.asked[r.URL.Path]++
			f.mu.Unlock()
			if n < times {
				code, _ := strconv.Atoi(parts[2])
				http.Error(w, "not yet", code)
				return
			}
		}
		_, _ = io.WriteString(w, name)
	}
}

func testMatches(t *testing.T, c *http.Client) {
	t.Helper()
	const host = "http://api.shop.svc.cluster.local:8080"
	for what, got := range map[string]answer{
		"a header":             call(c, "api", "/one", "x-want: two"),
		"a header, inverted":   call(c, "api", "/inverted", "x-stay: no"),
		"an exact path":        call(c, "api", "/exact"),
		"a regular expression": call(c, "api", "/re/42"),
		"a method":             request(c, http.MethodDelete, host+"/one"),
		"a query parameter":    call(c, "api", "/one?v=2"),
	} {
		if got.String() != "200 v2" {
			t.Errorf("%s: got %s, want v2", what, got)
		}
	}
	for what, got := range map[string]answer{
		"another header value":          call(c, "api", "/one", "x-want: one"),
		"a header, inverted":            call(c, "api", "/one/inverted", "x-stay: yes"),
		"another query":                 call(c, "api", "/one?v=1"),
		"a prefix of a path":            call(c, "api", "/one/exact"),
		"the method of another request": request(c, http.MethodPut, host+"/one"),
	} {
		if got.String() != "200 v1" {
			t.Errorf("%s: got %s, want v1", what, got)
		}
	}
	if got := request(c, http.MethodGet, "http://nobody.shop.svc.cluster.local:8080/"); got.status != http.StatusNotFound {
		t.Errorf("a host that is no backend answers %s under DROP_ALL, want 404", got)
	}
}

func testRetries(t *testing.T, c *http.Client) {
	t.Helper()
	for what, test := range map[string]struct {
		service, path string
		want          int
	}{
		"by default a 503 is tried three times":              {"quick", "/fail/503/2/default", 200},
		"by default a fourth attempt is not made":            {"quick", "/fail/503/3/default", 503},
		"by default a 500 is an answer":                      {"quick", "/fail/500/1/default", 500},
		"the user's policy tries four times":                 {"patient", "/fail/500/3/user", 200},
		"the user's policy ends":                             {"patient", "/fail/500/4/user", 500},
		"a policy without retries turns the default off":     {"raw", "/fail/503/1/raw", 503},
		"a path that does not fail is answered at the first": {"raw", "/fail/503/0/raw", 200},
	} {
		if got := call(c, test.service, test.path); got.status != test.want {
			t.Errorf("%s: got %s, want %d", what, got, test.want)
		}
	}
}

func testEgress(t *testing.T, s *site, web, stranger *pod) {
	t.Helper()
	// Connections that are open stay open, so each call makes its own.
	c := web.client(false, false)
	c.Transport.(*http.Transport).DisableKeepAlives = true
	http8080 := "http://" + stranger.address(false) + ":8080/"
	other := "http://" + stranger.address(false) + ":7070/"
	check := func(filter string, open bool) {
		t.Helper()
		s.write("00-mesh.yaml", meshOf(filter))
		s.eventually("the filter is "+filter, func() bool {
			return (request(c, http.MethodGet, other).status == http.StatusOK) == open
		})
		// Listeners and routes are resources of their own, and Envoy's workers take each when they come to it.
		want := map[bool]int{true: http.StatusOK, false: http.StatusNotFound}[open]
		s.eventually(fmt.Sprintf("%s: a host that is no backend, on a port that backends use, answers %d", filter, want), func() bool {
			return request(c, http.MethodGet, http8080).status == want
		})
		if got := call(c, "quick", "/"); got.String() != "200 v1" {
			t.Errorf("%s: a backend answers %s", filter, got)
		}
	}
	check("DROP_ALL", false)
	check("ALLOW_ALL", true)
	check("DROP_ALL", false)
}
