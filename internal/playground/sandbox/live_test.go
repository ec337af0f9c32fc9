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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
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
	argv := os.Args[:2:2]
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	var err error
	role, args := os.Args[2], os.Args[3:]
	switch role {
	case RoleInit:
		err = Init(argv, args)
	case RolePod:
		err = Hold(ctx, args)
	case RoleEnter:
		err = Enter(args)
	case roleOutside:
		err = outside(ctx, argv, args[0])
	case roleStranger:
		err = stranger(args[0])
	case roleProgram:
		err = program(ctx, argv, args[0])
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, role+":", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// outside runs a sandbox, as the playground does, and prints its events.
func outside(ctx context.Context, argv []string, marker string) error {
	dir, err := Scratch()
	if err != nil {
		return err
	}
	return Run(ctx, Config{
		Self: argv, Program: []string{roleProgram, marker}, Dir: dir, Plan: []byte(dir), Stderr: os.Stderr,
		Event: func(line []byte) { _, _ = os.Stdout.Write(append(line, '\n')) },
	})
}

// stranger becomes a normal user with a range of ids, without a change to the machine, and runs outside as that user.
func stranger(marker string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "sandbox")
	if err != nil {
		return err
	}
	for file, line := range map[string]string{
		"passwd": "stranger:x:54321:54321::/:/bin/sh\n", "group": "stranger:x:54321:\n",
		"subuid": "stranger:700000:65536\n", "subgid": "stranger:700000:65536\n",
	} {
		path := filepath.Join(dir, file)
		was, err := os.ReadFile("/etc/" + file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(path, append(was, line...), 0o644); err != nil {
			return err
		}
		if err := unix.Mount(path, "/etc/"+file, "", unix.MS_BIND, ""); err != nil {
			return err
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(54321), syscall.Setuid(54321)); err != nil {
		return err
	}
	return syscall.Exec(Self, []string{os.Args[0], "sandbox-test", roleOutside, marker}, os.Environ())
}

// program is what runs inside: it reports what it finds, leaves an orphan and a pod behind, and waits.
func program(ctx context.Context, argv []string, marker string) error {
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
	pod, err := StartPod(ctx, argv, PodConfig{Name: "pod-" + marker, Hosts: hosts, Resolv: resolv})
	if err != nil {
		return err
	}
	seen, err := pod.Command(ctx, argv, "cat", "/etc/hosts").Output()
	if err != nil {
		return fmt.Errorf("cat in the pod: %w", err)
	}
	// The proxy's user id has to exist inside, and what runs under it must not outlive the sandbox either.
	orphan := exec.Command("sh", "-c", "setpriv --reuid=1337 --clear-groups sleep 1000 >/dev/null 2>&1 </dev/null &")
	if err := orphan.Run(); err != nil {
		return fmt.Errorf("orphan: %w", err)
	}
	writeErr := os.WriteFile("/etc/tulle-was-here", nil, 0o600)
	line, err := json.Marshal(report{
		PID: os.Getpid(), UID: os.Getuid(), Parent: os.Getppid(), Hosts: string(seen),
		ReadOnly: errors.Is(writeErr, syscall.EROFS), Links: links(),
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

func links() []string {
	data, _ := os.ReadFile("/proc/self/net/dev")
	var names []string
	for line := range strings.Lines(string(data)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}

// needRoot skips where the machine cannot run the test; in CI that is a failure.
func needRoot(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	if os.Getenv("CI") != "" { //nolint:forbidigo // the switch between skipping and failing belongs to the tests
		t.Fatal("needs root, which CI has to give")
	}
	t.Skip("needs root")
}

func TestNothingOutlivesTheOutside(t *testing.T) {
	needRoot(t)
	for name, tc := range map[string]struct {
		role string
		end  func(*testing.T, *os.Process)
	}{
		"as root after kill -9":          {roleOutside, kill(syscall.SIGKILL)},
		"as root after SIGTERM":          {roleOutside, kill(syscall.SIGTERM)},
		"as a normal user after kill -9": {roleStranger, kill(syscall.SIGKILL)},
		"as a normal user after SIGTERM": {roleStranger, kill(syscall.SIGTERM)},
	} {
		t.Run(name, func(t *testing.T) {
			marker := "sandbox-" + strconv.Itoa(os.Getpid()) + "-" + strconv.Itoa(int(time.Now().UnixNano()%1e6)) //nolint:forbidigo // unique among runs
			before := surroundings(t)
			cmd := exec.Command(Self, "sandbox-test", tc.role, marker)
			exe, err := os.Executable()
			if err != nil {
				t.Fatal(err)
			}
			cmd.Args[0] = exe
			if tc.role == roleStranger {
				cmd.Args[0] = "stranger"
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
			inside := namespaceMates(t, cmd.Process.Pid)
			if len(inside) < 4 {
				t.Errorf("found %d processes inside, want init, program, pod and orphan", len(inside))
			}
			tc.end(t, cmd.Process)
			_ = cmd.Wait()
			gone(t, inside)
			if after := surroundings(t); after != before {
				t.Errorf("the machine changed:\n%s\nwas:\n%s", after, before)
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

// namespaceMates lists the processes in the process namespace of the child of the process.
func namespaceMates(t *testing.T, parent int) []int {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	byNamespace := map[string][]int{}
	var wanted string
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		ns, err := os.Readlink(filepath.Join("/proc", e.Name(), "ns/pid"))
		if err != nil || ns == own {
			continue
		}
		byNamespace[ns] = append(byNamespace[ns], pid)
		stat, _ := os.ReadFile(filepath.Join("/proc", e.Name(), "stat"))
		if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); len(fields) > 1 && fields[1] == strconv.Itoa(parent) {
			wanted = ns
		}
	}
	return byNamespace[wanted]
}

func gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000)
		if err != nil || n != 1 {
			t.Errorf("process %d of the sandbox is still there: %v", pid, err)
		}
		_ = unix.Close(fd)
	}
}

// surroundings are the mounts, the network links and the scratch files of the machine.
func surroundings(t *testing.T) string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := Scratch()
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, d := range []string{dir, "/run/netns", os.TempDir()} {
		entries, _ := os.ReadDir(d)
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), "sandbox") || d != os.TempDir() {
				files = append(files, filepath.Join(d, e.Name()))
			}
		}
	}
	return string(mounts) + strings.Join(links(), "\n") + strings.Join(files, "\n")
}
