// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package feature_test follows changes of manifests to proxies over real gRPC, in one process.
package feature_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/tulle-mesh/tulle/internal/cli"
	"github.com/tulle-mesh/tulle/internal/clock"
)

// patience is how long a test waits for what must come; it only matters when a test fails.
const patience = time.Minute

// world is a control plane in this process, wired as the command line wires it, and a folder of manifests that it watches.
type world struct {
	t    *testing.T
	dir  string // the manifests
	sock string // folder of the sockets
	logs *lockedBuffer

	stop context.CancelFunc
	done chan int
}

// newWorld writes the manifests, by file name, and starts a control plane over them.
func newWorld(t *testing.T, manifests map[string]string) *world {
	t.Helper()
	sock, err := os.MkdirTemp("", "tulle") //nolint:usetesting // the path of a unix socket has 107 bytes at most, and t.TempDir may have more
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(sock) })
	w := &world{t: t, dir: t.TempDir(), sock: sock, logs: new(lockedBuffer)}
	for name, text := range manifests {
		w.write(name, text)
	}
	w.start()
	t.Cleanup(func() {
		w.end()
		if t.Failed() {
			t.Logf("control plane:\n%s", w.logs.String())
		}
	})
	return w
}

// start starts the control plane, and returns once it is ready.
func (w *world) start() {
	w.t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan int, 1)
	w.stop, w.done = stop, done
	env := cli.Env{
		Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: w.logs,
		Getenv: func(string) string { return "" }, Clock: clock.Real{},
	}
	args := []string{"serve", "-f", w.dir, "--xds", "unix://" + w.sock + "/xds", "--http", "unix://" + w.sock + "/http"}
	go func() { done <- cli.Run(ctx, env, args) }()
	w.eventually("the control plane is ready", func() bool {
		_, err := w.get("/readyz")
		return err == nil
	})
}

// end ends the control plane in good order.
func (w *world) end() {
	w.t.Helper()
	if w.stop == nil {
		return
	}
	w.stop()
	w.stop = nil
	select {
	case code := <-w.done:
		if code != 0 {
			w.t.Errorf("serve ended with code %d", code)
		}
	case <-time.After(patience):
		w.t.Error("serve does not end")
	}
}

// write puts a manifest in place in one step, as a careful editor does.
func (w *world) write(name, text string) {
	w.t.Helper()
	next := filepath.Join(w.dir, "."+name+".next")
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Rename(next, filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.dir, name)); err != nil {
		w.t.Fatal(err)
	}
}

// dial opens a connection of its own, as each proxy does.
func (w *world) dial() *grpc.ClientConn {
	w.t.Helper()
	conn, err := grpc.NewClient("unix://"+w.sock+"/xds", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20)))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func (w *world) get(path string) ([]byte, error) {
	client := http.Client{Timeout: patience, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", w.sock+"/http")
		},
	}}
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodGet, "http://tulle"+path, http.NoBody)
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
		err = fmt.Errorf("%s: %s: %s", path, response.Status, body)
	}
	return body, err
}

// finding is a row of /debug/findings.
type finding struct {
	Severity, Reason, Object, Field, Value, File, Message, Mend string
	Line                                                        int
}

func (f finding) String() string {
	return fmt.Sprintf("%s %s %s %s: %s (%s:%d)", f.Severity, f.Reason, f.Object, f.Field, f.Message, filepath.Base(f.File), f.Line)
}

func (w *world) findings() []finding {
	w.t.Helper()
	body, err := w.get("/debug/findings")
	if err != nil {
		w.t.Fatal(err)
	}
	var list []finding
	if err := json.Unmarshal(body, &list); err != nil {
		w.t.Fatalf("%v in %s", err, body)
	}
	return list
}

// checkAll is what 'tulle check' finds in the manifests, whether a proxy is connected or not.
func (w *world) checkAll() []finding {
	w.t.Helper()
	var out bytes.Buffer
	env := cli.Env{
		Stdin: strings.NewReader(""), Stdout: &out, Stderr: w.logs,
		Getenv: func(string) string { return "" }, Clock: clock.Real{},
	}
	code := cli.Run(w.t.Context(), env, []string{"check", "-f", w.dir, "-o", "json"})
	var list []finding
	if err := json.Unmarshal(out.Bytes(), &list); err != nil {
		w.t.Fatalf("check ended with code %d: %v in %s", code, err, out.String())
	}
	return list
}

// errors are the findings that say that something is not in force.
func (w *world) errors() []finding {
	w.t.Helper()
	var list []finding
	for _, f := range w.findings() {
		if f.Severity == "error" {
			list = append(list, f)
		}
	}
	return list
}

// eventually waits for a condition of which nothing tells.
func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	deadline := time.After(patience)
	for !condition() {
		select {
		case <-deadline:
			w.t.Fatalf("never came: %s\nfindings: %v\nlog:\n%s", what, w.lastFindings(), w.logs.String())
		case <-time.After(2 * time.Millisecond):
		}
	}
}

func (w *world) lastFindings() string {
	body, err := w.get("/debug/findings")
	if err != nil {
		return err.Error()
	}
	var list []finding
	if err := json.Unmarshal(body, &list); err != nil {
		return err.Error()
	}
	return fmt.Sprint(list)
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.String()
}
