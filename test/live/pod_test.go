// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package live_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tulle-mesh/tulle/internal/playground/sandbox"
)

// pod is a network namespace with an address or two. The test stands in it as its application and as its client; a proxy may run in it.
type pod struct {
	s         *site
	name      string
	hosts     string // the file that is /etc/hosts inside
	box       *sandbox.Pod
	ns        *os.File
	addresses []netip.Addr
	agent     *process
	ends      []func()
}

// pod makes a pod without a proxy.
func (s *site) pod(name string) *pod {
	s.t.Helper()
	p := &pod{s: s, name: name, hosts: filepath.Join(s.dir, name+".hosts")}
	number := int(numbers.Add(1))
	if err := os.WriteFile(p.hosts, []byte("127.0.0.1 localhost\n"), 0o644); err != nil {
		s.t.Fatal(err)
	}
	var err error
	p.box, err = sandbox.StartPod(context.Background(), argv(), sandbox.PodConfig{Name: name, Workload: name, Namespace: "shop", Hosts: p.hosts, Resolv: p.hosts})
	if err != nil {
		s.t.Fatal(err)
	}
	s.pods = append(s.pods, p)
	if p.ns, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", p.box.PID())); err != nil {
		s.t.Fatal(err)
	}
	if err := s.node.Attach(p.box.PID(), number); err != nil {
		s.t.Fatal(err)
	}
	if p.addresses, err = s.node.PodAddresses(number); err != nil {
		s.t.Fatal(err)
	}
	return p
}

// argv leads this executable to the roles of the sandbox.
func argv() []string { return []string{os.Args[0], marker} }

func (p *pod) close() {
	for _, end := range p.ends {
		end()
	}
	p.ends = nil
	if p.agent != nil {
		p.agent.kill()
		if p.s.t.Failed() {
			p.s.t.Logf("proxy of %s:\n%s", p.name, tail(p.agent.output()))
		}
		p.agent = nil
	}
	if p.box != nil {
		_ = p.box.End() // it is killed
		p.box = nil
	}
	_ = p.ns.Close() // nothing was written
}

// sidecar starts the proxy of a node of namespace shop, with the redirect of the ports that the application listens on.
func (p *pod) sidecar(nodeName string, ports ...int) *pod {
	t := p.s.t
	t.Helper()
	agent := filepath.Join(p.s.bin, "tulle-agent")
	list := make([]string, 0, len(ports))
	for _, port := range ports {
		list = append(list, strconv.Itoa(port))
	}
	redirect := p.box.Command(t.Context(), argv(), agent, "redirect", "--app-ports", strings.Join(list, ","), "--ipv6="+strconv.FormatBool(p.s.node.IPv6()))
	if out, err := redirect.CombinedOutput(); err != nil {
		t.Fatalf("redirect: %v: %s", err, out)
	}
	p.agent = p.s.start(p.box.Command(context.Background(), argv(), agent, "run",
		"--node", "mesh/m1/virtualNode/"+nodeName+"_shop", "--xds", p.s.xds(), "--envoy", filepath.Join(p.s.bin, "envoy"),
		"--concurrency", "1", "--run-dir", "/tmp/tulle-agent", "--log-level", "warning"))
	ready := p.box.Command(t.Context(), argv(), agent, "ready", "--wait", "20")
	if out, err := ready.CombinedOutput(); err != nil {
		t.Fatalf("proxy of %s: %v: %s\n%s\nerrors: %v", p.name, err, out, tail(p.agent.output()), p.s.errors())
	}
	return p
}

// inside runs f on a thread in the pod's network namespace. What f opens stays there.
func (p *pod) inside(f func() error) error {
	done := make(chan error, 1)
	go func() {
		// The thread ends with the goroutine, since it is never unlocked.
		runtime.LockOSThread()
		if err := unix.Setns(int(p.ns.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- fmt.Errorf("entering %s: %w", p.name, err)
			return
		}
		done <- f()
	}()
	return <-done
}

// dial connects from the pod to an address that is no name.
func (p *pod) dial(ctx context.Context, address string) (net.Conn, error) {
	var conn net.Conn
	err := p.inside(func() (err error) {
		conn, err = (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "tcp", address)
		return err
	})
	return conn, err
}

// listen opens a port of the pod's application, for both families.
func (p *pod) listen(port int) net.Listener {
	p.s.t.Helper()
	var l net.Listener
	err := p.inside(func() (err error) {
		l, err = new(net.ListenConfig).Listen(context.Background(), "tcp", ":"+strconv.Itoa(port))
		return err
	})
	if err != nil {
		p.s.t.Fatal(err)
	}
	p.ends = append(p.ends, func() { _ = l.Close() })
	return l
}

// serve is an HTTP application, with HTTP/2 without TLS beside HTTP/1.
func (p *pod) serve(port int, handler http.HandlerFunc) *pod {
	p.s.t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{Handler: handler, Protocols: protocols, ReadHeaderTimeout: patience}
	l := p.listen(port)
	go func() {
		if err := server.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			panic(err)
		}
	}()
	p.ends = append(p.ends, func() { _ = server.Close() })
	return p
}

// says is an application that answers every request with the pod's name.
func (p *pod) says(port int) *pod {
	p.s.t.Helper()
	return p.serve(port, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, p.name) })
}

// tcp is an application that handles connections one by one.
func (p *pod) tcp(port int, handle func(net.Conn)) *pod {
	p.s.t.Helper()
	l := p.listen(port)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer func() { _ = conn.Close() }()
				handle(conn)
			}()
		}
	}()
	return p
}

// client calls from the pod. A host of the form service.shop... is dialled at the Service's address; others must be addresses.
func (p *pod) client(v6, http2 bool) *http.Client {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetUnencryptedHTTP2(http2)
	transport := &http.Transport{
		Protocols: protocols, MaxIdleConnsPerHost: 64,
		DialContext: func(ctx context.Context, _, address string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(address)
			if err != nil {
				return nil, err
			}
			if service, _, found := strings.Cut(host, ".shop"); found {
				host = p.s.address(service, v6).String()
			}
			return p.dial(ctx, net.JoinHostPort(host, port))
		},
	}
	p.ends = append(p.ends, transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// answer is what came back, as text: "200 v1", or "error ..." where nothing did.
type answer struct {
	status int
	body   string
	header http.Header
	err    error
}

func (a answer) String() string {
	if a.err != nil {
		return "error: " + a.err.Error()
	}
	return strings.TrimSpace(strconv.Itoa(a.status) + " " + a.body)
}

// call sends a GET to a service of namespace shop, at port 8080 and the path, with headers as "name: value".
func call(c *http.Client, service, path string, headers ...string) answer {
	return request(c, http.MethodGet, "http://"+service+".shop.svc.cluster.local:8080"+path, headers...)
}

func request(c *http.Client, method, url string, headers ...string) answer {
	r, err := http.NewRequestWithContext(context.Background(), method, url, http.NoBody)
	if err != nil {
		return answer{err: err}
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		if name == "Host" {
			r.Host = value
			continue
		}
		r.Header.Set(name, value)
	}
	response, err := c.Do(r)
	if err != nil {
		return answer{err: err}
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return answer{status: response.StatusCode, body: strings.TrimSpace(string(body)), header: response.Header, err: err}
}
