// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package sandbox runs a program in Linux namespaces of its own, so that it may build networks, mount files and start
// processes without a change to the machine, and so that nothing of it outlives its caller. Only package playground
// and its parts call it.
package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Roles of the processes inside; each is the first argument after Config.Self.
const (
	// RoleInit is process 1 of the sandbox.
	RoleInit = "init"
	// RolePod holds the namespaces of one pod.
	RolePod = "pod"
	// RoleEnter becomes another program in a pod's namespaces.
	RoleEnter = "enter"
)

// Descriptors that the program inside is started with.
const (
	// PlanFD is where the program inside reads Config.Plan from.
	PlanFD = 3
	// EventsFD is where the program inside writes its lines for Config.Event.
	EventsFD = 4
	// mappedFD tells process 1 that its user and group ids are mapped.
	mappedFD = 5
)

// Self is this executable, wherever it lies; as a path in Config.Bind too.
const Self = "/proc/self/exe"

// Config says what to run in a sandbox.
type Config struct {
	// Self is the argument vector, program name included, that leads this same executable to the roles of this package.
	Self []string
	// Program is the role, with its arguments, that runs inside; the sandbox ends when it does.
	Program []string
	// Bind names executables that have to be within reach of every user inside: name under Dir/bin to path outside.
	Bind map[string]string
	// Env is the environment of the program inside.
	Env []string
	// Dir is the scratch directory inside, memory only; see Scratch.
	Dir string
	// Plan is given to the program inside on PlanFD.
	Plan []byte
	// Event is called with each line that the program inside writes to EventsFD.
	Event func(line []byte)
	// Stderr receives what the processes inside write to their standard error.
	Stderr io.Writer
}

// setup is what process 1 has to know; it travels as its one argument.
type setup struct {
	Program []string          `json:"program"`
	Bind    map[string]string `json:"bind,omitempty"`
	Dir     string            `json:"dir"`
	Mapped  bool              `json:"mapped"`
}

// Scratch returns a directory over which a sandbox can put its memory file system without hiding one of the paths.
func Scratch(paths ...string) (string, error) {
	candidates := []string{"/dev/shm", "/mnt", "/media", "/srv"}
	for _, dir := range candidates {
		if info, err := os.Stat(dir); err != nil || !info.IsDir() {
			continue
		}
		if !hides(dir, paths) {
			return dir, nil
		}
	}
	return "", fmt.Errorf("no directory to put the sandbox's own files over: one of %s must exist and hold none of the programs", strings.Join(candidates, ", "))
}

func hides(dir string, paths []string) bool {
	for _, p := range paths {
		if rel, err := filepath.Rel(dir, p); err == nil && !strings.HasPrefix(rel, "..") {
			return true
		}
	}
	return false
}

// Run runs the program in new network, mount, process, host name and IPC namespaces, as a normal user in a user
// namespace too, and returns when every process inside has ended. When ctx ends, or this process dies in whatever way,
// all that is inside is killed. The error is nil if the program ended with success.
func Run(ctx context.Context, c Config) error {
	result := make(chan error, 1)
	go func() {
		// The kernel sends the parent-death signal when the thread that started the child ends, so this one must
		// stay as long as the child does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		result <- run(ctx, c)
	}()
	return <-result
}

func run(ctx context.Context, c Config) error {
	var ids *idRanges
	if os.Geteuid() != 0 {
		var err error
		if ids, err = ownRanges(); err != nil {
			return err
		}
	}
	arg, err := json.Marshal(setup{Program: c.Program, Bind: c.Bind, Dir: c.Dir, Mapped: ids == nil})
	if err != nil {
		return fmt.Errorf("describing the sandbox: %w", err)
	}
	p, err := openPipes()
	if err != nil {
		return err
	}
	defer p.close()

	cmd := again(ctx, c.Self, RoleInit, string(arg))
	cmd.Env = c.Env
	cmd.Stdin = p.lifeRead
	cmd.Stderr = c.Stderr
	cmd.ExtraFiles = []*os.File{p.planRead, p.eventsWrite, p.mappedRead}
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWUTS | syscall.CLONE_NEWIPC,
		Setsid:     true, // Ctrl-C is for this process alone
		Pdeathsig:  syscall.SIGKILL,
	}
	if ids != nil {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
	}
	if err := cmd.Start(); err != nil {
		return startError(err, ids != nil)
	}
	p.closeTheirs()
	if ids != nil {
		if err := ids.apply(ctx, cmd.Process.Pid); err != nil {
			return errors.Join(err, cmd.Process.Kill(), ignoreExit(cmd.Wait()))
		}
	}
	return converse(ctx, c, cmd, p)
}

// converse hands over the plan and passes events on until everything inside has ended.
func converse(ctx context.Context, c Config, cmd *exec.Cmd, p *pipes) error {
	if _, err := p.mappedWrite.Write([]byte{1}); err != nil {
		return errors.Join(fmt.Errorf("waking the sandbox: %w", err), ignoreExit(cmd.Wait()))
	}
	go func() {
		// A program that ends before it has read its plan closes the pipe; how it ended is reported below.
		_, _ = p.planWrite.Write(c.Plan)
		_ = p.planWrite.Close()
	}()
	lines := bufio.NewScanner(p.eventsRead)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		c.Event(lines.Bytes())
	}
	scanErr := lines.Err()
	waitErr := cmd.Wait()
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case scanErr != nil:
		return fmt.Errorf("reading from the sandbox: %w", scanErr)
	case waitErr != nil:
		return fmt.Errorf("sandbox: %w", waitErr)
	}
	return nil
}

// again is a command that runs this executable once more, in a role of its own. argv is Config.Self.
func again(ctx context.Context, argv []string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, Self)
	cmd.Args = slices.Concat(argv, args)
	return cmd
}

func startError(err error, user bool) error {
	switch {
	case user && (errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL)):
		return fmt.Errorf("this machine does not let a normal user make namespaces (%w): run as root, or set user.max_user_namespaces, kernel.unprivileged_userns_clone or kernel.apparmor_restrict_unprivileged_userns with sysctl", err)
	case errors.Is(err, syscall.EPERM):
		return fmt.Errorf("making namespaces: %w: root needs CAP_SYS_ADMIN for it, which containers drop: run outside, or as a normal user", err)
	}
	return fmt.Errorf("starting the sandbox: %w", err)
}

// ignoreExit drops the news that a process which was killed has been killed.
func ignoreExit(err error) error {
	if _, ok := errors.AsType[*exec.ExitError](err); ok {
		return nil
	}
	return err
}
