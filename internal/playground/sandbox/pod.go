// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Pod is a set of network, mount and host name namespaces, as the containers of a pod share them.
type Pod struct {
	cmd *exec.Cmd
}

// PodConfig says what a pod's processes see.
type PodConfig struct {
	// Name is the pod's host name.
	Name string `json:"name"`
	// Workload and Namespace say what it is a pod of; they are there to be found by Find.
	Workload  string `json:"workload"`
	Namespace string `json:"namespace"`
	// Hosts and Resolv are files that stand in for /etc/hosts and /etc/resolv.conf. Rewriting them in place changes
	// what the pod sees.
	Hosts  string `json:"hosts"`
	Resolv string `json:"resolv"`
}

// ready is what a pod says once its namespaces are in shape.
const ready = "ready"

// StartPod makes the namespaces of a pod. argv is Config.Self. It can be called inside a sandbox only.
func StartPod(ctx context.Context, argv []string, c PodConfig) (*Pod, error) {
	arg, err := json.Marshal(c)
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", c.Name, err)
	}
	cmd := again(ctx, argv, RolePod, string(arg))
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWUTS}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("pod %s: %w", c.Name, err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("pod %s: making its namespaces: %w", c.Name, err)
	}
	if line, err := bufio.NewReader(out).ReadString('\n'); strings.TrimSpace(line) != ready {
		return nil, errors.Join(fmt.Errorf("pod %s did not start: %w", c.Name, err), cmd.Process.Kill(), ignoreExit(cmd.Wait()))
	}
	return &Pod{cmd: cmd}, nil
}

// PID is the process that holds the pod's namespaces.
func (p *Pod) PID() int { return p.cmd.Process.Pid }

// End gives the pod's namespaces up; they go when the last process in them ends.
func (p *Pod) End() error {
	return errors.Join(p.cmd.Process.Kill(), ignoreExit(p.cmd.Wait()))
}

// Hold is the process behind a Pod: it shapes its namespaces and stays until ctx ends. args are those after RolePod.
func Hold(ctx context.Context, args []string) error {
	var c PodConfig
	if len(args) != 1 {
		return errors.New("a pod takes one argument; it is started by the playground alone")
	}
	if err := json.Unmarshal([]byte(args[0]), &c); err != nil {
		return fmt.Errorf("reading the pod's description: %w", err)
	}
	if err := unix.Sethostname([]byte(c.Name)); err != nil {
		return fmt.Errorf("pod %s: setting its host name: %w", c.Name, err)
	}
	for file, source := range map[string]string{"/etc/hosts": c.Hosts, "/etc/resolv.conf": c.Resolv} {
		// A machine without such a file, or with a dangling link, has nothing to be hidden from the pod.
		err := unix.Mount(source, file, "", unix.MS_BIND, "")
		if err != nil && (file == "/etc/hosts" || !errors.Is(err, fs.ErrNotExist)) {
			return fmt.Errorf("pod %s: putting %s in place of %s: %w", c.Name, source, file, err)
		}
	}
	// Sockets and logs that programs make under fixed names must neither meet those of other pods nor reach the machine.
	if err := unix.Mount("tmp", "/tmp", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return fmt.Errorf("pod %s: mounting /tmp: %w", c.Name, err)
	}
	if _, err := os.Stdout.WriteString(ready + "\n"); err != nil {
		return fmt.Errorf("pod %s: %w", c.Name, err)
	}
	<-ctx.Done()
	return nil
}

// Enter becomes the program in args[1:], in the namespaces of the process args[0]. It returns only if it cannot.
func Enter(args []string) error {
	if len(args) < 2 {
		return errors.New("enter takes a process and a command; it is started by the playground alone")
	}
	pid, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("enter: process %q: %w", args[0], err)
	}
	runtime.LockOSThread()
	// A thread that shares its working directory with others cannot change its mounts.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("enter: %w", err)
	}
	kinds := []struct {
		name string
		flag int
	}{{"net", unix.CLONE_NEWNET}, {"uts", unix.CLONE_NEWUTS}, {"mnt", unix.CLONE_NEWNS}}
	fds := make([]int, len(kinds))
	for i, k := range kinds {
		path := filepath.Join("/proc", strconv.Itoa(pid), "ns", k.name)
		if fds[i], err = unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC, 0); err != nil {
			return fmt.Errorf("enter: opening %s: %w", path, err)
		}
	}
	for i, k := range kinds {
		if err := unix.Setns(fds[i], k.flag); err != nil {
			return fmt.Errorf("enter: joining the %s namespace of process %d: %w", k.name, pid, err)
		}
	}
	program, err := exec.LookPath(args[1])
	if err != nil {
		return fmt.Errorf("enter: %w", err)
	}
	return os.NewSyscallError("exec "+program, syscall.Exec(program, args[1:], os.Environ())) //nolint:gosec // running what it is told is its purpose
}

// Command returns a command that runs inside the pod. argv is Config.Self.
func (p *Pod) Command(ctx context.Context, argv []string, program ...string) *exec.Cmd {
	return again(ctx, argv, slices.Concat([]string{RoleEnter, strconv.Itoa(p.PID())}, program)...)
}
