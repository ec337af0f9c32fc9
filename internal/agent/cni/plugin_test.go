// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/agent/envoytest"
)

// insideKey is the variable that makes this test binary check the plugin in the namespaces that it finds itself in.
const insideKey = "TULLE_CNI_TEST_INSIDE"

func TestMain(m *testing.M) {
	if _, plugin := os.LookupEnv("CNI_COMMAND"); plugin {
		if err := Main(context.Background(), slog.New(slog.NewTextHandler(os.Stderr, nil)), "about"); err != nil {
			_ = err.Print()
			os.Exit(1)
		}
		os.Exit(0)
	}
	if _, inside := os.LookupEnv(insideKey); !inside {
		os.Exit(m.Run())
	}
	if err := checkPod(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// call is one of a container runtime's calls of the plugin.
type call struct {
	Env           map[string]string `json:"env"`
	Configuration json.RawMessage   `json:"configuration"`
}

// start starts this test binary as the plugin, and returns its answer.
func (c call) start() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path, _ := os.LookupEnv("PATH")
	command := exec.Command(self) //nolint:noctx // it ends by itself
	command.Env = []string{"PATH=" + path}
	for name, value := range c.Env {
		command.Env = append(command.Env, name+"="+value)
	}
	command.Stdin = bytes.NewReader(c.Configuration)
	var out, log bytes.Buffer
	command.Stdout, command.Stderr = &out, &log
	err = command.Run()
	if exit, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || exit.ExitCode() != 1) {
		return "", fmt.Errorf("the plugin: %w: %s", err, &log)
	}
	return out.String(), nil
}

// answer is what a call has come to.
func (c call) answer(t *testing.T) string {
	t.Helper()
	out, err := c.start()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The calls here touch no namespace. What they come to is the specification's, version by version.
func TestPluginAnswersAsTheSpecificationSays(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/calls/*.in.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no calls", err)
	}
	if *update {
		prune(t, "testdata/calls", ".in.json", ".out.json")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".in.json"), func(t *testing.T) {
			t.Parallel()
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var c call
			if err := json.Unmarshal(content, &c); err != nil {
				t.Fatal(err)
			}
			got := c.answer(t)
			golden := strings.TrimSuffix(file, ".in.json") + ".out.json"
			if *update {
				write(t, golden, got)
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPluginRefusesAPodWithUsersOfItsOwn(t *testing.T) {
	t.Parallel()
	pod := exec.CommandContext(t.Context(), "sleep", "60")
	pod.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	if err := pod.Start(); err != nil {
		envoytest.Unable(t, "namespaces cannot be made here: "+err.Error())
	}
	defer func() { _ = pod.Process.Kill(); _ = pod.Wait() }()
	c, err := podCall("ADD", fmt.Sprintf("/proc/%d/ns/net", pod.Process.Pid), injected(nil))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.answer(t); !strings.Contains(got, `"code": 101`) || !strings.Contains(got, "the pod has users of its own (hostUsers: false)") {
		t.Errorf("got %s", got)
	}
}

func TestPluginCapturesThePodThatAsksForIt(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"iptables-restore", "ip6tables-restore"} {
		if _, err := exec.LookPath(name); err != nil {
			envoytest.Unable(t, name+" is missing: apt-get install iptables")
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self)
	command.Env = append(os.Environ(), insideKey+"=1")
	if os.Geteuid() == 0 {
		command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	} else {
		// The range of ids is needed for the rule about Envoy's user.
		unshare := []string{"unshare", "--user", "--map-root-user", "--map-auto", "--net", "--mount"}
		if out, err := exec.CommandContext(t.Context(), unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
			envoytest.Unable(t, fmt.Sprintf("no user namespace with a range of ids (apt-get install uidmap): %v: %s", err, out))
		}
		command = exec.CommandContext(t.Context(), unshare[0], append(unshare[1:], self)...)
		command.Env = append(os.Environ(), insideKey+"=1")
	}
	out, err := command.CombinedOutput()
	if err != nil && strings.Contains(err.Error(), "fork/exec") {
		envoytest.Unable(t, "namespaces cannot be made here: "+err.Error())
	}
	if err != nil {
		t.Errorf("inside: %v\n%s", err, out)
	}
}
