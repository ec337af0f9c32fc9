// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tulle-mesh/tulle/internal/cli"
	"github.com/tulle-mesh/tulle/internal/clock"
)

const good = `
apiVersion: v1
kind: Namespace
metadata: {name: prod, labels: {mesh: m}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: Mesh
metadata: {name: m}
spec: {namespaceSelector: {matchLabels: {mesh: m}}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: web, namespace: prod}
spec:
  podSelector: {matchLabels: {app: web}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: web.example.com}}
`

// result is what a command did.
type result struct {
	code           int
	stdout, stderr string
}

func run(t *testing.T, stdin string, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code := cli.Run(t.Context(), cli.Env{
		Stdin: strings.NewReader(stdin), Stdout: &stdout, Stderr: &stderr,
		Executable: "/nonexistent/tulle", Getenv: func(string) string { return "" }, Clock: clock.Real{},
	}, args)
	return result{code: code, stdout: stdout.String(), stderr: stderr.String()}
}

func TestExitCodesTellErrorsFromWrongUse(t *testing.T) {
	t.Parallel()
	broken := good + "---\napiVersion: appmesh.k8s.aws/v1beta2\nkind: VirtualNode\nmetadata: {name: bad, namespace: prod}\nspec:\n  listeners: [{portMapping: {port: 70000, protocol: http}}]\n  serviceDiscovery: {dns: {hostname: a.b}}\n"
	for name, c := range map[string]struct {
		stdin string
		args  []string
		code  int
		says  string
	}{
		"no fault is 0":                   {good, []string{"check", "-f", "-"}, 0, "0 errors, 0 warnings"},
		"an error is 1, and says where":   {broken, []string{"check", "-f", "-"}, 1, "spec.listeners[0].portMapping.port"},
		"no command prints the help":      {"", nil, 0, "Available Commands"},
		"no -f is wrong use":              {"", []string{"check"}, 2, "-f is required"},
		"an unknown flag is wrong use":    {"", []string{"check", "--nope"}, 2, "unknown flag: --nope"},
		"an unknown command is wrong use": {"", []string{"chekc"}, 2, `unknown command "chekc"`},
		"an argument too many":            {good, []string{"check", "-f", "-", "extra"}, 2, "extra"},
		"a bad format names the good":     {good, []string{"check", "-f", "-", "-o", "xml"}, 2, "want one of text, json, yaml"},
		"a path that is not there":        {"", []string{"check", "-f", "/nonexistent/x"}, 1, "/nonexistent/x"},
		"a bad stage":                     {good, []string{"translate", "-f", "-", "--to", "stars"}, 2, "want mesh, view or envoy"},
		"static without a node":           {good, []string{"translate", "-f", "-", "--to", "envoy", "--static"}, 2, "--static needs"},
		"a node that is not there":        {good, []string{"translate", "-f", "-", "--to", "view", "--node", "m/nope"}, 2, "there are: m/web_prod"},
		"plaintext beyond this machine":   {"", []string{"serve", "-f", t.TempDir(), "--xds", "0.0.0.0:0"}, 2, "loopback"},
		"a relative socket":               {"", []string{"serve", "-f", t.TempDir(), "--xds", "unix://x.sock"}, 2, "absolute path"},
		"a namespace that cannot be":      {good, []string{"check", "-f", "-", "-n", "A B"}, 2, "-n A B: want the name of a namespace"},
		"an account that is no account":   {good, []string{"check", "-f", "-", "--account-id", "12"}, 2, "want 12 digits"},
		"a region that is no region":      {good, []string{"translate", "-f", "-", "--region", "x y"}, 2, "--region x y"},
		"a domain that is no domain":      {good, []string{"check", "-f", "-", "--cluster-domain", "a/b"}, 2, "want a DNS domain"},
		"the version for machines":        {"", []string{"version", "-o", "json"}, 0, `"version": `},
		"a list of pods for machines":     {"", []string{"playground", "list", "-o", "xml"}, 2, "want one of table, json, yaml"},
		"a bad log level":                 {"", []string{"serve", "-f", t.TempDir(), "--log-level", "loud"}, 2, "debug, info, warn or error"},
		"a scenario that is not there":    {"", []string{"playground", "nope"}, 2, "djapp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := run(t, c.stdin, c.args...)
			if r.code != c.code || !strings.Contains(r.stdout+r.stderr, c.says) {
				t.Errorf("exit code %d, want %d; want %q in:\n%s%s", r.code, c.code, c.says, r.stdout, r.stderr)
			}
		})
	}
}

func TestCheckAsJSONHasTheFieldsThatMachinesRead(t *testing.T) {
	t.Parallel()
	r := run(t, strings.Replace(good, "hostname: web.example.com", "hostnam: web.example.com", 1), "check", "-f", "-", "-o", "json")
	var list []map[string]any
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || len(list) == 0 {
		t.Fatalf("not a list of findings: %v\n%s", err, r.stdout)
	}
	for _, field := range []string{"severity", "reason", "object", "field", "file", "line", "message", "mend"} {
		if _, ok := list[0][field]; !ok {
			t.Errorf("no %s in %v", field, list[0])
		}
	}
}

func TestNamesInManifestsNeitherSteerTheTerminalNorBreakLines(t *testing.T) {
	t.Parallel()
	r := run(t, strings.Replace(good, "{name: web,", `{name: "we\e[2J\0\nb\u00e9",`, 1), "check", "-f", "-")
	if r.code != 1 || strings.ContainsAny(r.stdout, "\x1b\x00") || !strings.Contains(r.stdout, `VirtualNode prod/we\x1b[2J\x00\nbé: `) {
		t.Errorf("exit code %d:\n%q", r.code, r.stdout)
	}
}

func TestTranslateTwiceGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"mesh", "view", "envoy"} {
		first := run(t, good, "translate", "-f", "-", "--to", to)
		second := run(t, good, "translate", "-f", "-", "--to", to)
		if first.code != 0 || first.stdout != second.stdout || !strings.Contains(first.stdout, "web_prod") {
			t.Errorf("--to %s: exit code %d, equal %v:\n%s%s", to, first.code, first.stdout == second.stdout, first.stdout, first.stderr)
		}
	}
}

func TestHelpShowsAnExampleForEveryCommand(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{}, {"serve"}, {"check"}, {"translate"}, {"playground"}, {"version"}, {"playground", "exec"}, {"playground", "list"}} {
		r := run(t, "", append(args, "--help")...)
		if r.code != 0 || !strings.Contains(r.stdout, "Examples:") {
			t.Errorf("tulle %v --help: exit code %d, no example in:\n%s", args, r.code, r.stdout)
		}
	}
}

func TestServeTellsHealthFindingsAndMetricsOverHTTP(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	manifests := filepath.Join(dir, "manifests")
	if err := os.MkdirAll(manifests, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(manifests, "a.yaml"), []byte(good), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(manifests, "b.yaml"), []byte("kind: [broken\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	httpSocket := filepath.Join(dir, "http.sock")
	ctx, stop := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	var stderr bytes.Buffer
	code := -1
	wait.Go(func() {
		code = cli.Run(ctx, cli.Env{Stdin: strings.NewReader(""), Stdout: io.Discard, Stderr: &stderr, Getenv: func(string) string { return "" }, Clock: clock.Real{}},
			[]string{"serve", "-f", manifests, "--xds", "unix://" + filepath.Join(dir, "xds.sock"), "--http", "unix://" + httpSocket})
	})
	client := unixClient(httpSocket)
	waitFor(t, client, "/readyz", "ok")
	for path, want := range map[string]string{
		"/healthz": "ok", "/metrics": "tulle_xds_connected_proxies 0", "/debug/findings": "b.yaml", "/debug/proxies": "[]",
	} {
		if body := get(t, client, path); !strings.Contains(body, want) {
			t.Errorf("%s has no %q:\n%s", path, want, body)
		}
	}
	stop()
	wait.Wait()
	if code != 0 {
		t.Errorf("serve ended with %d:\n%s", code, stderr.String())
	}
	for _, socket := range []string{"xds.sock", "http.sock"} {
		if _, err := os.Stat(filepath.Join(dir, socket)); err == nil {
			t.Errorf("%s is left behind", socket)
		}
	}
}

func unixClient(path string) *http.Client {
	return &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DialContext: dialUnix(path)}}
}

func get(t *testing.T, client *http.Client, path string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://tulle"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func waitFor(t *testing.T, client *http.Client, path, want string) {
	t.Helper()
	for range 500 {
		if strings.Contains(get(t, client, path), want) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s never says %q: %s", path, want, get(t, client, path))
}
