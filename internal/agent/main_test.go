// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tulle-mesh/tulle/internal/agent/bootstrap"
)

// helperKey is the variable that makes this test binary an agent; its value is where the files are.
const helperKey = "TULLE_AGENT_TEST_HELPER"

func TestMain(m *testing.M) {
	if config, ok := os.LookupEnv(helperKey); ok {
		os.Exit(helper(config))
	}
	os.Exit(m.Run())
}

// helper runs an agent with a bootstrap of the user's own, until it is killed.
func helper(text string) int {
	var config Config
	if err := json.Unmarshal([]byte(text), &config); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := Run(context.Background(), nil, config, Streams{Out: os.Stdout, Err: os.Stderr, Log: log}); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// script writes a program that stands where Envoy would, for what the agent does with any program.
func script(t *testing.T, dir, text string) string {
	t.Helper()
	path := dir + "/program"
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

func programConfig(t *testing.T, dir, text string) Config {
	t.Helper()
	config := newConfig(t, dir, "plane.sock")
	config.Envoy, config.ControlPlane, config.ConfigFile = script(t, dir, text), nil, "/dev/null"
	config.Bootstrap = bootstrap.Settings{AdminPort: 1}
	return config
}

func TestAKilledAgentLeavesNoEnvoy(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	config := programConfig(t, dir, "echo $$\nexec sleep 60\n")
	text, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self)
	command.Env = append(os.Environ(), helperKey+"="+string(text))
	out, err := command.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = command.Wait() // it was killed
	for syscall.Kill(pid, 0) == nil {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			break // ended, and its new parent has yet to notice
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func TestEnvoyGetsItsArgumentsAndFilesAndTheLimitOfRestartsHolds(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	config := programConfig(t, dir, "echo \"$@\"\ntest $(ulimit -n) = $(ulimit -Hn) && exit 3\n")
	config.Restarts, config.DrainTime, config.EnvoyArgs = 2, time.Minute, []string{"--component-log-level", "upstream:debug"}
	r := start(t, dir, config)
	want := "envoy ended by itself (exit status 3) and was started again 2 times, which is the limit"
	if err := <-r.result; err == nil || err.Error() != want {
		t.Errorf("the agent ended with %v, want %s", err, want)
	}
	log, err := os.ReadFile(dir + "/log")
	if err != nil {
		t.Fatal(err)
	}
	line := "-c /dev/null --disable-hot-restart --drain-strategy gradual --log-level warning --concurrency 1 --drain-time-s 60 --component-log-level upstream:debug\n"
	if n := strings.Count(string(log), line); n != 3 {
		t.Errorf("started %d times with the wanted arguments, want 3:\n%s", n, log)
	}
}

func TestOneAgentTakesARunDirectory(t *testing.T) {
	t.Parallel()
	dir := openDir(t)
	config := programConfig(t, dir, "exec sleep 60\n")
	unlock, err := prepareRunDir(config.RunDir)
	if err != nil {
		t.Fatal(err)
	}
	err = Run(t.Context(), nil, config, Streams{Out: os.Stdout, Err: os.Stderr, Log: slog.New(slog.DiscardHandler)})
	if err == nil || !strings.Contains(err.Error(), "another tulle-agent uses run directory") {
		t.Errorf("error %v", err)
	}
	unlock()
	if err := os.Chmod(config.RunDir, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := prepareRunDir(config.RunDir); err == nil || !strings.Contains(err.Error(), "this user alone may write to") {
		t.Errorf("a directory that all may write to: error %v", err)
	}
}

func TestReapEndedBuriesAllButOurs(t *testing.T) { //nolint:paralleltest // it would bury the children of other tests
	spawn := func() int {
		pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		return pid
	}
	orphan, ours := spawn(), spawn()
	state := func(pid int) string {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			return ""
		}
		_, rest, _ := cutLast(string(stat), ") ")
		return rest[:1]
	}
	for state(orphan) != "Z" || state(ours) != "Z" {
		time.Sleep(time.Millisecond)
	}
	if err := reapEnded(func(pid int) bool { return pid != orphan }); err != nil {
		t.Fatal(err)
	}
	if state(orphan) != "" || state(ours) != "Z" {
		t.Errorf("the orphan is %q, ours is %q: want it buried, and ours not", state(orphan), state(ours))
	}
	if _, err := syscall.Wait4(ours, nil, 0, nil); err != nil {
		t.Error(err)
	}
}
