// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package live_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tulle-mesh/tulle/internal/agent/envoytest"
	"github.com/tulle-mesh/tulle/internal/playground/network"
)

// patience is how long a test waits for what must come; it only matters when a test fails.
const patience = 20 * time.Second

// node is this process's network namespace, which routes between the pods of all sites.
var node = sync.OnceValues(network.NewNode)

// numbers are given to pods and Services, whose addresses come from them.
var numbers atomic.Int32

// site is a control plane, the manifests that it watches, and pods with their proxies.
type site struct {
	t    *testing.T
	dir  string // scratch: manifests, sockets
	bin  string // the programs
	node *network.Node

	controlPlane *process
	addresses    map[string][]netip.Addr // of Services
	pods         []*pod
}

// newSite starts a control plane over the manifests, by file name.
func newSite(t *testing.T, manifests map[string]string) *site {
	t.Helper()
	if why, cannot := os.LookupEnv(cannotVariable); cannot {
		envoytest.Unable(t, why)
	}
	scratch, _ := os.LookupEnv(insideVariable)
	n, err := node()
	if err != nil {
		envoytest.Unable(t, err.Error())
	}
	dir := t.TempDir()
	s := &site{t: t, dir: dir, bin: filepath.Join(scratch, "bin"), node: n, addresses: map[string][]netip.Addr{}}
	t.Cleanup(s.close)
	if err := os.Mkdir(filepath.Join(dir, "manifests"), 0o750); err != nil {
		t.Fatal(err)
	}
	for name, text := range manifests {
		s.write(name, text)
	}
	s.startControlPlane()
	return s
}

func (s *site) startControlPlane() {
	s.t.Helper()
	s.controlPlane = s.start(exec.CommandContext(context.Background(), filepath.Join(s.bin, "tulle"), "serve",
		"-f", filepath.Join(s.dir, "manifests"), "--xds", s.xds(), "--http", "unix://"+s.dir+"/http"))
	s.eventually("the control plane is ready", func() bool {
		_, err := s.get("/readyz")
		return err == nil
	})
}

func (s *site) xds() string { return "unix://" + s.dir + "/xds" }

// close ends all that the site has started.
func (s *site) close() {
	for _, p := range s.pods {
		p.close()
	}
	if s.controlPlane != nil {
		s.controlPlane.kill()
	}
	if s.t.Failed() && s.controlPlane != nil {
		s.t.Logf("control plane:\n%s", tail(s.controlPlane.output()))
	}
}

// write puts a manifest in place in one step.
func (s *site) write(name, text string) {
	s.t.Helper()
	next := filepath.Join(s.dir, "manifests", "."+name+".next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(s.dir, "manifests", name)); err != nil {
		s.t.Fatal(err)
	}
}

// address returns an address of a Service, which it makes one up for: IPv4, or IPv6.
func (s *site) address(service string, v6 bool) netip.Addr {
	s.t.Helper()
	if s.addresses[service] == nil {
		list, err := s.node.ServiceAddresses(int(numbers.Add(1)))
		if err != nil {
			s.t.Fatal(err)
		}
		s.addresses[service] = list
	}
	for _, a := range s.addresses[service] {
		if a.Is6() == v6 {
			return a
		}
	}
	s.t.Fatalf("%s has no such address", service)
	return netip.Addr{}
}

func (s *site) get(path string) ([]byte, error) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", s.dir+"/http")
		},
	}}
	request, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, "http://tulle"+path, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", path, response.Status)
	}
	return body, err
}

// errors are the findings that say that something is not in force.
func (s *site) errors() []string {
	s.t.Helper()
	body, err := s.get("/debug/findings")
	if err != nil {
		s.t.Fatal(err)
	}
	var rows []struct{ Severity, Reason, Object, Message string }
	if err := json.Unmarshal(body, &rows); err != nil {
		s.t.Fatal(err)
	}
	var list []string
	for _, r := range rows {
		if r.Severity == "error" {
			list = append(list, r.Reason+" "+r.Object+": "+r.Message)
		}
	}
	return list
}

// settle waits until each proxy has acknowledged all that it was sent.
func (s *site) settle() {
	s.t.Helper()
	s.eventually("every proxy has all", func() bool {
		body, err := s.get("/debug/proxies")
		if err != nil {
			return false
		}
		var proxies []struct {
			Types []struct{ Pending, Unacked int }
		}
		if err := json.Unmarshal(body, &proxies); err != nil {
			s.t.Fatal(err)
		}
		for _, p := range proxies {
			for _, t := range p.Types {
				if t.Pending+t.Unacked > 0 {
					return false
				}
			}
		}
		return true
	})
}

// eventually waits for a condition of which nothing tells.
func (s *site) eventually(what string, condition func() bool) {
	s.t.Helper()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-deadline:
			s.t.Fatalf("never came: %s", what)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// process is a program that runs beside the test.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	mu   sync.Mutex
	out  bytes.Buffer
}

func (s *site) start(cmd *exec.Cmd) *process {
	s.t.Helper()
	p := &process{cmd: cmd, done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p, p
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is in its state
		close(p.done)
	}()
	return p
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(b)
}

func (p *process) output() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.done
}

// terminate asks the process to end and returns its exit code.
func (p *process) terminate(t *testing.T) int {
	t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-p.done:
	case <-time.After(40 * time.Second):
		t.Fatalf("%s does not end:\n%s", p.cmd, tail(p.output()))
	}
	return p.cmd.ProcessState.ExitCode()
}

func tail(s string) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-60):], "\n")
}
