// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package live_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
)

// TestWhatIsOutsideTheMesh reaches hosts that are no pods of a node, and proxies from where only strangers are.
func TestWhatIsOutsideTheMesh(t *testing.T) {
	s := newSite(t, map[string]string{
		"00-mesh.yaml":  meshOf("DROP_ALL"),
		"10-web.yaml":   nodeOf("web", plain, backends("ext")),
		"11-other.yaml": nodeOf("other", plain),
		"20-ext.yaml": `apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: ext, namespace: shop}
spec:
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: ext.example.com}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: ext, namespace: shop}
spec:
  awsName: ext.example.com
  provider: {virtualNode: {virtualNodeRef: {name: ext}}}
`,
	})
	outside := s.pod("outside").says(8080).tls(443)
	web, other := s.pod("web"), s.pod("other")
	for _, p := range []*pod{web, other} {
		text := fmt.Sprintf("127.0.0.1 localhost\n%s ext.example.com\n", outside.address(false))
		if err := os.WriteFile(p.hosts, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	web.says(8080).sidecar("web", 8080)
	other.sidecar("other", 8080)
	s.settle()

	t.Run("a host by DNS answers those who list it alone", func(t *testing.T) {
		url := "http://" + outside.address(false) + ":8080/"
		s.eventually("web reaches it", func() bool {
			return request(web.client(false, false), http.MethodGet, url, "Host: ext.example.com").String() == "200 outside"
		})
		if got := request(other.client(false, false), http.MethodGet, url, "Host: ext.example.com"); got.err == nil {
			t.Errorf("one who lists nothing got %s", got)
		}
	})
	t.Run("port 443", func(t *testing.T) {
		check := func(filter, name string, want bool) {
			t.Helper()
			if got := other.handshakes(outside, name); got != want {
				t.Errorf("%s: TLS to %q works: %t, want %t", filter, name, got, want)
			}
		}
		check("DROP_ALL", "s3.us-west-2.amazonaws.com", true)
		check("DROP_ALL", "example.com", false)
		check("DROP_ALL", "", false)
		s.write("00-mesh.yaml", meshOf("ALLOW_ALL"))
		s.eventually("the filter is ALLOW_ALL", func() bool { return other.handshakes(outside, "example.com") })
		check("ALLOW_ALL", "s3.us-west-2.amazonaws.com", true)
		check("ALLOW_ALL", "", true)
	})
	t.Run("the administration of a proxy is for its own pod", func(t *testing.T) {
		base := "http://" + web.address(false) + ":9901"
		c := outside.client(false, false)
		for path, want := range map[string]int{"/ready": 200, "/stats/prometheus": 200, "/config_dump": 404, "/quitquitquit": 404, "/ready/../config_dump": 404} {
			if got := request(c, http.MethodGet, base+path); got.status != want {
				t.Errorf("%s answers %d, want %d", path, got.status, want)
			}
		}
		if got := request(c, http.MethodPost, base+"/quitquitquit"); got.status != http.StatusNotFound {
			t.Errorf("POST /quitquitquit answers %s", got)
		}
	})
}

// tls is an application that does nothing but shake hands.
func (p *pod) tls(port int) *pod {
	p.s.t.Helper()
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.StartTLS()
	config := server.TLS.Clone()
	server.Close()
	return p.tcp(port, func(conn net.Conn) {
		secure := tls.Server(conn, config)
		_ = secure.HandshakeContext(context.Background()) // the client tells
		_ = secure.Close()
	})
}

// handshakes says whether TLS to port 443 of a pod works under a name, "" for none.
func (p *pod) handshakes(to *pod, name string) bool {
	conn, err := p.dial(p.s.t.Context(), net.JoinHostPort(to.address(false), "443"))
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	if err := conn.SetDeadline(deadline()); err != nil {
		return false
	}
	secure := tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true})
	return secure.HandshakeContext(p.s.t.Context()) == nil
}
