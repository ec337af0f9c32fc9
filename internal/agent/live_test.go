// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/tulle-mesh/tulle/internal/agent/bootstrap"
	"github.com/tulle-mesh/tulle/internal/agent/envoytest"
	"github.com/tulle-mesh/tulle/internal/agent/relay"
	"github.com/tulle-mesh/tulle/internal/clock"
)

// running is an agent with real Envoy.
type running struct {
	config Config
	dir    string
	stop   chan struct{}
	// result gets what Run returned.
	result chan error
}

// openDir is a directory that other users may enter.
func openDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "tulle") //nolint:usetesting // the path of t.TempDir is too long for unix sockets, and closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// newConfig is for an agent whose control planes serve on sockets of the given names in the directory.
func newConfig(t *testing.T, dir string, planes ...string) Config {
	t.Helper()
	var list []string
	for _, name := range planes {
		list = append(list, "unix://"+filepath.Join(dir, name))
	}
	endpoints, err := relay.ParseEndpoints(strings.Join(list, ","))
	if err != nil {
		t.Fatal(err)
	}
	proxy, err := bootstrap.ParseProxy("mesh/m/virtualNode/n")
	if err != nil {
		t.Fatal(err)
	}
	user := -1
	if os.Geteuid() == 0 {
		user = 1337
	}
	return Config{
		Envoy: envoytest.Path(t), User: user, LogLevel: "warning", Concurrency: 1, ControlPlane: endpoints,
		Drain:     Drain{Minimum: 3 * time.Second, Limit: 15 * time.Second},
		Bootstrap: bootstrap.Settings{Proxy: proxy, AgentVersion: "v0", AdminPort: uint16(freePort(t)), OutlierLog: "/dev/stdout"},
		RunDir:    filepath.Join(dir, "run"), Status: "unix://" + filepath.Join(dir, "status.sock"),
	}
}

// start runs an agent until the test ends. Its log and Envoy's are shown if the test fails.
func start(t *testing.T, dir string, config Config) *running {
	t.Helper()
	out, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	r := &running{config: config, dir: dir, stop: make(chan struct{}), result: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		r.result <- Run(ctx, r.stop, config, Streams{Out: out, Err: out, Log: slog.New(slog.NewTextHandler(out, nil))})
		close(r.result)
	}()
	t.Cleanup(func() {
		cancel()
		for range r.result {
			// It is closed once the agent has ended.
		}
		_ = out.Close()
		if t.Failed() {
			log, err := os.ReadFile(out.Name())
			t.Logf("agent and Envoy: %v\n%s", err, log)
		}
	})
	return r
}

func (r *running) waitReady(t *testing.T) {
	t.Helper()
	if err := Ready(t.Context(), r.config.Status, 20*time.Second); err != nil {
		t.Fatal(err)
	}
}

// application answers on HTTP, slowly on /slow, and echoes on TCP.
func application(t *testing.T) (httpPort, echoPort uint32) {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			time.Sleep(3 * time.Second)
		}
		_, _ = io.Copy(w, r.Body)
	})
	web := listenTCP(t)
	server := &http.Server{Handler: mux}
	go func() { _ = server.Serve(web) }()
	t.Cleanup(func() { _ = server.Close() })
	echo := listenTCP(t)
	go func() {
		for {
			conn, err := echo.Accept()
			if err != nil {
				return
			}
			go func() {
				_, _ = io.Copy(conn, conn)
				_ = conn.Close()
			}()
		}
	}()
	t.Cleanup(func() { _ = echo.Close() })
	return portOf(t, web), portOf(t, echo)
}

func listenTCP(t *testing.T) net.Listener {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func portOf(t *testing.T, l net.Listener) uint32 {
	t.Helper()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("%v is no TCP address", l.Addr())
	}
	return uint32(address.Port)
}

// post sends a request that no client library repeats by itself, and fails unless the answer is what was sent.
func post(client *http.Client, port uint32, path string) error {
	request, err := http.NewRequestWithContext(context.Background(), http.MethodPost, fmt.Sprintf("http://127.0.0.1:%d%s", port, path), io.LimitReader(strings.NewReader("payload"), 7))
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil || response.StatusCode != http.StatusOK || string(body) != "payload" {
		return fmt.Errorf("%s: %d %q %w", path, response.StatusCode, body, err)
	}
	return nil
}

func TestNoRequestIsLostWhenTheAgentIsToldToEnd(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	app, echo := application(t)
	httpPort, tcpPort := freePort(t), freePort(t)
	servePlane(t, filepath.Join(dir, "plane.sock"), &plane{resources: inbound(t, httpPort, tcpPort, app, echo)})
	r := start(t, dir, newConfig(t, dir, "plane.sock"))
	r.waitReady(t)

	h2 := new(http.Protocols)
	h2.SetUnencryptedHTTP2(true)
	clients := []*http.Client{
		{Transport: &http.Transport{}},
		{Transport: &http.Transport{DisableKeepAlives: true}},
		{Transport: &http.Transport{Protocols: h2}},
	}
	var sent, lost atomic.Int64
	removed := make(chan struct{}) // closed when the clients have heard that this endpoint goes
	var load sync.WaitGroup
	for i := range 6 {
		load.Go(func() {
			for {
				select {
				case <-removed:
					return
				default:
				}
				sent.Add(1)
				if err := post(clients[i%len(clients)], httpPort, "/"); err != nil {
					lost.Add(1)
					t.Errorf("lost: %v", err)
				}
			}
		})
	}
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", fmt.Sprint("127.0.0.1:", tcpPort))
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond) // under load for a while
	load.Go(func() {
		if err := post(&http.Client{Transport: &http.Transport{}}, httpPort, "/slow"); err != nil {
			t.Errorf("the slow request is lost: %v", err)
		}
	})
	time.Sleep(200 * time.Millisecond) // the slow request is under way
	close(r.stop)
	time.Sleep(2 * time.Second) // what it takes for clients to hear
	close(removed)
	load.Wait()
	roundTrip(t, conn)
	_ = conn.Close()

	if err := <-r.result; err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	t.Logf("%d requests, %d lost", sent.Load(), lost.Load())
	if _, err := new(net.Dialer).DialContext(t.Context(), "tcp", fmt.Sprint("127.0.0.1:", r.config.Bootstrap.AdminPort)); err == nil {
		t.Error("Envoy still runs")
	}
}

func roundTrip(t *testing.T, conn net.Conn) {
	t.Helper()
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Errorf("TCP connection: %v", err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Errorf("TCP connection: got %q, %v", got, err)
	}
}

func TestEnvoyIsReadyWithItsFirstConfigurationAndOutlivesControlPlanes(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	app, echo := application(t)
	httpPort := freePort(t)
	r := start(t, dir, newConfig(t, dir, "a.sock", "b.sock"))
	// Envoy is up, and waits.
	for {
		err := Ready(t.Context(), r.config.Status, 0)
		if err == nil {
			t.Fatal("ready without configuration")
		}
		if strings.Contains(err.Error(), "the control plane does not answer") {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	resources := inbound(t, httpPort, freePort(t), app, echo)
	a, b := &plane{resources: resources}, &plane{resources: resources}
	stopA := servePlane(t, filepath.Join(dir, "a.sock"), a)
	r.waitReady(t)
	servePlane(t, filepath.Join(dir, "b.sock"), b)
	client := &http.Client{Transport: &http.Transport{}}
	if err := post(client, httpPort, "/"); err != nil {
		t.Error(err)
	}

	stopA()
	left := clock.Real{}.Now()
	for len(b.nodes()) == 0 {
		if err := post(client, httpPort, "/"); err != nil {
			t.Fatalf("without a control plane: %v", err)
		}
	}
	t.Logf("%s from the end of one control plane to the stream to the other", clock.Real{}.Now().Sub(left))
	node := b.nodes()[0]
	if node.GetId() != "mesh/m/virtualNode/n" || node.GetMetadata().GetFields()["tulle"].GetStructValue().GetFields()["agent"].GetStringValue() != "v0" {
		t.Errorf("Envoy says it is %v", node)
	}
	r.checkStatsListener(t)
}

// checkStatsListener looks at what others than this host see of Envoy's administration.
func (r *running) checkStatsListener(t *testing.T) {
	t.Helper()
	addresses, err := hostAddresses()
	if err != nil {
		t.Fatal(err)
	}
	if len(addresses) == 0 {
		t.Log("this host has no address that others can reach")
		return
	}
	client := &http.Client{Transport: &http.Transport{}}
	base := "http://" + net.JoinHostPort(addresses[0].String(), strconv.Itoa(int(r.config.Bootstrap.AdminPort)))
	for path, want := range map[string]int{
		"/ready": 200, "/stats/prometheus?usedonly": 200,
		"/": 404, "/quitquitquit": 404, "/config_dump": 404, "/ready/../config_dump": 404, "/stats": 404, "/ready/": 404,
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, base+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("GET %s: %d, want %d", path, response.StatusCode, want)
		}
	}
}

func TestEnvoyIsStartedAgainWhenItIsKilled(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	app, echo := application(t)
	httpPort := freePort(t)
	servePlane(t, filepath.Join(dir, "plane.sock"), &plane{resources: inbound(t, httpPort, freePort(t), app, echo)})
	config := newConfig(t, dir, "plane.sock")
	config.Restarts = 1
	r := start(t, dir, config)
	r.waitReady(t)
	first := envoyPID(t, config.RunDir)
	kill(t, first)
	second := first
	for second == first || second == 0 {
		time.Sleep(20 * time.Millisecond)
		second = envoyPID(t, config.RunDir)
	}
	r.waitReady(t)
	if err := post(&http.Client{Transport: &http.Transport{}}, httpPort, "/"); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	kill(t, second)
	want := "envoy ended by itself (signal: killed) and was started again 1 times, which is the limit"
	if err := <-r.result; err == nil || err.Error() != want {
		t.Errorf("the agent ended with %v, want %s", err, want)
	}
}

func TestADrainEndsAtItsLimitAndEnvoyServesUntilTheAgentIsToldToEnd(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	app, echo := application(t)
	httpPort, tcpPort := freePort(t), freePort(t)
	servePlane(t, filepath.Join(dir, "plane.sock"), &plane{resources: inbound(t, httpPort, tcpPort, app, echo)})
	config := newConfig(t, dir, "plane.sock")
	config.Drain = Drain{Limit: 1500 * time.Millisecond}
	r := start(t, dir, config)
	r.waitReady(t)
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", fmt.Sprint("127.0.0.1:", tcpPort))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	roundTrip(t, conn)

	if err := DrainNow(t.Context(), config.Status); err != nil {
		t.Fatal(err)
	}
	if err := Ready(t.Context(), config.Status, 0); err == nil || err.Error() != "draining" {
		t.Errorf("while draining the agent says %v", err)
	}
	roundTrip(t, conn)
	if err := post(&http.Client{Transport: &http.Transport{}}, httpPort, "/"); err != nil {
		t.Errorf("after the drain: %v", err)
	}
	close(r.stop)
	if err := <-r.result; err != nil {
		t.Errorf("the agent ended with %v", err)
	}
}

// envoyPID finds the Envoy whose bootstrap is in a run directory; 0 if there is none.
func envoyPID(t *testing.T, runDir string) int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		line, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "cmdline"))
		if err == nil && strings.Contains(string(line), filepath.Join(runDir, "bootstrap.yaml")) {
			return pid
		}
	}
	return 0
}

func kill(t *testing.T, pid int) {
	t.Helper()
	if pid == 0 {
		t.Fatal("no Envoy")
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
}
