// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package sandbox

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/playground/sandboxtest"
)

// The test program is its own inside: see TestMain.
const (
	roleOutside  = "outside"
	roleStranger = "stranger"
	roleProgram  = "program"
)

func TestMain(m *testing.M) {
	if len(os.Args) < 2 || os.Args[1] != "sandbox-test" {
		os.Exit(m.Run())
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	err := play(ctx, os.Args[:2:2], os.Args[2], os.Args[3:])
	stop()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func play(ctx context.Context, argv []string, role string, args []string) error {
	switch role {
	case RoleInit:
		return Init(argv, args)
	case RolePod:
		return Hold(ctx, args)
	case RoleEnter:
		return Enter(args)
	case roleOutside:
		return outside(ctx, argv)
	case roleStranger:
		return sandboxtest.ExecAsStranger(nil, []string{argv[0], argv[1], roleOutside}, os.Environ())
	case roleProgram:
		return program(ctx, argv)
	}
	return fmt.Errorf("no role %q", role)
}

// outside runs a sandbox, as the playground does, and prints its events.
func outside(ctx context.Context, argv []string) error {
	dir, err := Scratch()
	if err != nil {
		return err
	}
	return Run(ctx, Config{
		Self: argv, Program: []string{roleProgram}, Dir: dir, Plan: []byte(dir), Stderr: os.Stderr,
		Event: func(line []byte) { _, _ = os.Stdout.Write(append(line, '\n')) },
	})
}

// program is what runs inside: it reports what it finds, leaves an orphan and a pod behind, and waits.
func program(ctx context.Context, argv []string) error {
	events := os.NewFile(EventsFD, "events")
	plan, err := io.ReadAll(os.NewFile(PlanFD, "plan"))
	if err != nil {
		return err
	}
	dir := string(plan)
	hosts, resolv := filepath.Join(dir, "hosts"), filepath.Join(dir, "resolv.conf")
	if err := errors.Join(os.WriteFile(hosts, []byte("127.0.0.1 inside\n"), 0o644), os.WriteFile(resolv, nil, 0o644)); err != nil {
		return err
	}
	pod, err := StartPod(ctx, argv, PodConfig{Name: "pod", Hosts: hosts, Resolv: resolv})
	if err != nil {
		return err
	}
	seen, err := pod.Command(ctx, argv, "cat", "/etc/hosts").Output()
	if err != nil {
		return fmt.Errorf("cat in the pod: %w", err)
	}
	// The proxy's user id has to exist inside, and what runs under it must not outlive the sandbox either.
	orphan := exec.CommandContext(ctx, "sh", "-c", "setpriv --reuid=1337 --clear-groups sleep 1000 >/dev/null 2>&1 </dev/null &")
	if err := orphan.Run(); err != nil {
		return fmt.Errorf("orphan: %w", err)
	}
	writeErr := os.WriteFile("/etc/tulle-was-here", nil, 0o600)
	line, err := json.Marshal(report{
		PID: os.Getpid(), UID: os.Getuid(), Parent: os.Getppid(), Hosts: string(seen),
		ReadOnly: errors.Is(writeErr, syscall.EROFS), Links: sandboxtest.Links(),
	})
	if err != nil {
		return err
	}
	if _, err := events.Write(append(line, '\n')); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

type report struct {
	PID, UID, Parent int
	Hosts            string
	ReadOnly         bool
	Links            []string
}

func TestNothingOutlivesTheOutside(t *testing.T) {
	sandboxtest.Need(t)
	type ending struct {
		role string
		end  func(*testing.T, *os.Process)
	}
	cases := map[string]ending{
		"as root after kill -9":          {roleOutside, kill(syscall.SIGKILL)},
		"as root after SIGTERM":          {roleOutside, kill(syscall.SIGTERM)},
		"as a normal user after kill -9": {roleStranger, kill(syscall.SIGKILL)},
		"as a normal user after SIGTERM": {roleStranger, kill(syscall.SIGTERM)},
	}
	if os.Geteuid() != 0 {
		cases = map[string]ending{
			"after kill -9": {roleOutside, kill(syscall.SIGKILL)},
			"after SIGTERM": {roleOutside, kill(syscall.SIGTERM)},
		}
	}
	scratch, err := Scratch()
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before := sandboxtest.Surroundings(t, scratch)
			cmd := exec.CommandContext(t.Context(), Self, "sandbox-test", tc.role)
			if tc.role == roleStranger {
				cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
			}
			var stderr bytes.Buffer
			cmd.Stderr = &stderr
			out, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(out).ReadBytes('\n')
			if err != nil {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
				t.Fatalf("the sandbox said nothing: %v: %s", err, stderr.String())
			}
			var got report
			if err := json.Unmarshal(line, &got); err != nil {
				t.Fatal(err)
			}
			if got.UID != 0 || got.Parent != 1 || !got.ReadOnly || got.Hosts != "127.0.0.1 inside\n" || !slices.Equal(got.Links, []string{"lo"}) {
				t.Errorf("inside it looks like %+v", got)
			}
			inside := sandboxtest.Inside(t, cmd.Process.Pid)
			if len(inside) < 4 {
				t.Errorf("found %d processes inside, want init, program, pod and orphan", len(inside))
			}
			tc.end(t, cmd.Process)
			_ = cmd.Wait()
			sandboxtest.Gone(t, inside)
			if diff := cmp.Diff(before, sandboxtest.Surroundings(t, scratch)); diff != "" {
				t.Error("the machine changed:", diff)
			}
		})
	}
}

func kill(sig syscall.Signal) func(*testing.T, *os.Process) {
	return func(t *testing.T, p *os.Process) {
		t.Helper()
		if err := p.Signal(sig); err != nil {
			t.Fatal(err)
		}
	}
}
