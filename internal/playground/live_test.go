// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package playground_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/agent/envoytest"
	"github.com/tulle-mesh/tulle/internal/cli"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/playground"
	"github.com/tulle-mesh/tulle/internal/playground/sandboxtest"
)

// This test program is tulle: it is what the tests start, and what the playground starts inside.
const (
	self     = "/proc/self/exe"
	stranger = "as-a-stranger"
)

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == stranger:
		programs := map[string]string{"tulle-agent": os.Args[2], "envoy": os.Args[3]}
		err := sandboxtest.ExecAsStranger(programs, append([]string{"tulle"}, os.Args[4:]...), os.Environ())
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	case len(os.Args) > 1 && (os.Args[1] == "playground" || os.Args[1] == "serve"):
		ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
		code := cli.Run(ctx, cli.Env{
			Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Executable: executable(),
			Getenv: func(key string) string { value, _ := os.LookupEnv(key); return value }, Clock: clock.Real{},
		}, os.Args[1:])
		stop()
		os.Exit(code)
	default:
		os.Exit(m.Run())
	}
}

func executable() string {
	path, err := os.Executable()
	if err != nil {
		return self
	}
	return path
}

// programs are what a playground needs besides tulle.
type programs struct{ agent, envoy string }

// TestPlayground runs playgrounds as users do. Its parts do not run at the same time: each fills a small machine.
func TestPlayground(t *testing.T) {
	p := build(t)
	t.Run("every scenario holds", p.everyScenarioHolds)
	t.Run("what does not hold is told and counts", p.whatDoesNotHoldIsToldAndCounts)
	t.Run("what cannot run is told in one line", p.whatCannotRunIsToldInOneLine)
	t.Run("nothing stays behind", p.nothingStaysBehind)
	t.Run("keep leaves pods to look into", p.keepLeavesPodsToLookInto)
}

// build builds tulle-agent and finds Envoy.
func build(t *testing.T) programs {
	t.Helper()
	sandboxtest.Need(t)
	if _, err := os.Stat("/usr/sbin/iptables-restore"); err != nil {
		envoytest.Unable(t, "needs iptables: apt-get install iptables")
	}
	agent := filepath.Join(t.TempDir(), "tulle-agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", agent, "github.com/tulle-mesh/tulle/cmd/tulle-agent")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return programs{agent: agent, envoy: envoytest.Path(t)}
}

// start starts tulle playground with the arguments.
func (p programs) start(t *testing.T, asStranger bool, args ...string) (*exec.Cmd, *bytes.Buffer, *bytes.Buffer) {
	t.Helper()
	var cmd *exec.Cmd
	if asStranger && os.Geteuid() == 0 {
		args = slices.Concat([]string{stranger, p.agent, p.envoy, "playground", "--agent", sandboxtest.Dir + "/tulle-agent", "--envoy", sandboxtest.Dir + "/envoy"}, args)
		cmd = exec.CommandContext(t.Context(), self, args...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	} else {
		cmd = exec.CommandContext(t.Context(), self, slices.Concat([]string{"playground", "--agent", p.agent, "--envoy", p.envoy}, args)...)
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	return cmd, &stdout, &stderr
}

func (p programs) everyScenarioHolds(t *testing.T) {
	for name, tc := range map[string]struct {
		scenario   string
		asStranger bool
		checks     map[string]int
	}{
		"the DJ app, as a normal user":         {"djapp", true, map[string]int{"a": 3, "b": 2, "c": 3, "d": 2, "e": 2}},
		"the DJ app of the second API version": {"djapp-v1beta2", false, map[string]int{"a": 2, "b": 2, "c": 5, "d": 2, "e": 2}},
		"a rolling restart, over IPv6 alone":   {rolling(t), false, map[string]int{"a": 2, "b": 2, "restart": 1}},
		"names and addresses of both families": {"testdata/bare", false, map[string]int{"names": 4, "four": 1, "nobody": 2, "restarted": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stdout, stderr := p.start(t, tc.asStranger, "-o", "json", tc.scenario)
			if err := cmd.Run(); err != nil {
				t.Fatalf("%v\n%s\n%s", err, stdout, stderr)
			}
			var report playground.Report
			if err := json.Unmarshal(stdout.Bytes(), &report); err != nil {
				t.Fatalf("%v\n%s", err, stdout)
			}
			checks := map[string]int{}
			for _, c := range report.Checks {
				checks[c.Check]++
				if !c.OK {
					t.Errorf("%s: want %s, got %s", c.Check, c.What, c.Found)
				}
			}
			if diff := cmp.Diff(tc.checks, checks); diff != "" || !report.OK {
				t.Errorf("ok: %t, checks: %s", report.OK, diff)
			}
		})
	}
}

// rolling makes a scenario of manifests that are an example's.
func rolling(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "rolling")
	err := os.CopyFS(dir, os.DirFS("testdata/rolling"))
	for _, name := range []string{"01-base_app.yaml", "02-meshed_app.yaml"} {
		data, readErr := os.ReadFile(filepath.Join("../../examples/djapp-v1beta2", name))
		err = errors.Join(err, readErr, os.WriteFile(filepath.Join(dir, name), data, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func (p programs) whatDoesNotHoldIsToldAndCounts(t *testing.T) {
	cmd, stdout, stderr := p.start(t, false, "testdata/wrong")
	err := cmd.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
		t.Errorf("%v, want exit code 1\n%s", err, stderr)
	}
	if text := stdout.String(); !strings.Contains(text, "body   FAILED  dj -> http://127.0.0.1:9080/: 200 jazz  200 metal") || !strings.Contains(text, "NOT all hold") {
		t.Error(text)
	}
}

func (p programs) whatCannotRunIsToldInOneLine(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no stand-in":   {[]string{"testdata/unready"}, `image hello-world: the scenario says nothing about "hello-world": name a stand-in under apps`},
		"no scenario":   {[]string{"nothing"}, "djapp"},
		"no such agent": {[]string{"--agent", "/nowhere", "djapp"}, "/nowhere"},
	} {
		t.Run(name, func(t *testing.T) {
			cmd, stdout, stderr := p.start(t, false, tc.args...)
			if err := cmd.Run(); err == nil {
				t.Error("exit code 0")
			}
			if stdout.Len() > 0 || !strings.Contains(stderr.String(), tc.want) {
				t.Errorf("stdout %q, stderr %q, want %q", stdout, stderr, tc.want)
			}
		})
	}
}

// nothingStaysBehind ends a playground at its fullest - control plane, Envoys, load - in ways that it can and cannot
// see coming.
func (p programs) nothingStaysBehind(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"kill -9": syscall.SIGKILL, "Ctrl-C": syscall.SIGINT} {
		t.Run(name, func(t *testing.T) {
			before := sandboxtest.Surroundings(t, "/dev/shm", "/mnt")
			cmd, _, _ := p.start(t, false, "djapp")
			cmd.Stderr = nil
			progress, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			lines := bufio.NewScanner(progress)
			for lines.Scan() && !strings.Contains(lines.Text(), "requests a second") {
				said.WriteString(lines.Text() + "\n")
			}
			inside := sandboxtest.Inside(t, cmd.Process.Pid)
			// init, director, control plane, load; and for each of three pods: namespaces, agent, Envoy, stand-in.
			if len(inside) < 4+3*4 {
				t.Errorf("only %d processes inside\n%s", len(inside), said.String())
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err == nil {
				t.Error("exit code 0")
			}
			sandboxtest.Gone(t, inside)
			if diff := cmp.Diff(before, sandboxtest.Surroundings(t, "/dev/shm", "/mnt")); diff != "" {
				t.Error("the machine changed:", diff)
			}
		})
	}
}

func (p programs) keepLeavesPodsToLookInto(t *testing.T) {
	for name, asStranger := range map[string]bool{"as root": false, "as a normal user": true} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.Abs("testdata/bare")
			if err != nil {
				t.Fatal(err)
			}
			cmd, stdout, _ := p.start(t, asStranger, "--keep", readable(t, dir))
			cmd.Stderr = nil
			progress, err := cmd.StderrPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			lines := bufio.NewScanner(progress)
			found := false
			for !found && lines.Scan() {
				found = strings.Contains(lines.Text(), "playground exec")
			}
			if !found {
				_ = cmd.Wait()
				t.Fatalf("it does not say how to look inside: %s", stdout)
			}
			inside := sandboxtest.Inside(t, cmd.Process.Pid)
			pods, err := playground.Pods()
			pods = slices.DeleteFunc(pods, func(p playground.Pod) bool { return !slices.Contains(inside, p.PID) })
			if err != nil || len(pods) != 3 || pods[0].Workload != "dj" {
				t.Fatalf("pods %+v, %v", pods, err)
			}
			seen, err := exec.CommandContext(t.Context(), self, "playground", "exec", pods[0].Name, "--", "cat", "/etc/hosts").CombinedOutput()
			if err != nil || !strings.Contains(string(seen), "jazz.prod.svc.cluster.local jazz\n") {
				t.Errorf("%v\n%s", err, seen)
			}
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			if err := cmd.Wait(); err != nil {
				t.Errorf("the end of a playground that was kept: %v", err)
			}
			sandboxtest.Gone(t, inside)
		})
	}
}

// readable copies a directory to where every user may read it.
func readable(t *testing.T, dir string) string {
	t.Helper()
	target := t.TempDir()
	if err := errors.Join(os.Chmod(target, 0o755), os.Chmod(filepath.Dir(target), 0o755), os.CopyFS(filepath.Join(target, "scenario"), os.DirFS(dir))); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(target, "scenario")
}
