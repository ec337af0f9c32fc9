// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package live_test

import (
	"net"
	"net/http"
	"testing"

	"github.com/tulle-mesh/tulle/internal/agent/envoytest"
)

// TestIPv6 calls by IPv6 what is reached by IPv6: both proxies stand in the way.
func TestIPv6(t *testing.T) {
	s := newSite(t, map[string]string{
		"00-mesh.yaml":     meshOf("DROP_ALL"),
		"10-web.yaml":      nodeOf("web", plain, backends("api", "db")),
		"20-nodes.yaml":    docs(sixNode("api", plain), sixNode("db", "{portMapping: {port: 3306, protocol: tcp}}")),
		"30-services.yaml": docs(provided("api", "api"), provided("db", "db")),
	})
	if !s.node.IPv6() {
		envoytest.Unable(t, "this kernel has no IPv6")
	}
	api := s.pod("api").serve(8080, func(w http.ResponseWriter, r *http.Request) {
		host, _, _ := net.SplitHostPort(r.RemoteAddr)
		_, _ = w.Write([]byte("from " + host))
	})
	db := s.pod("db").greets(3306)
	s.service("api", 8080, api)
	s.service("db", 3306, db)
	api.sidecar("api", 8080)
	db.sidecar("db", 3306)
	web := s.pod("web").sidecar("web", 8080)
	s.settle()

	got := call(web.client(true, false), "api", "/")
	if got.status != http.StatusOK || (got.body != "from ::1" && got.body != "from 127.0.0.1") {
		t.Errorf("got %s, want an answer to the proxy beside the application", got)
	}
	if got := got.header.Get("Server"); got != "envoy" {
		t.Errorf("server is %q: no proxy stood in the way", got)
	}
	if got := greeting(web, net.JoinHostPort(s.address("db", true).String(), "3306"), stall); got != "db" {
		t.Errorf("TCP: greeted by %q", got)
	}
	if got := request(web.client(true, false), http.MethodGet, "http://["+api.address(true)+"]:8080/"); got.status != http.StatusNotFound {
		t.Errorf("DROP_ALL: the pod's own address answers %s, want 404 from the proxy", got)
	}
	if got := greeting(web, net.JoinHostPort(db.address(true), "3307"), stall); got != "" {
		t.Errorf("DROP_ALL: greeted by %q on a port of no backend", got)
	}
	if bad := s.errors(); len(bad) > 0 {
		t.Errorf("findings: %v", bad)
	}
}

// sixNode is a node that is reached by IPv6 alone.
func sixNode(name, listener string) string {
	return `apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: ` + name + `, namespace: shop}
spec:
  podSelector: {matchLabels: {app: ` + name + `}}
  listeners: [` + listener + `]
  serviceDiscovery: {dns: {hostname: ` + name + `.shop.svc.cluster.local, ipPreference: IPv6_ONLY}}
`
}
