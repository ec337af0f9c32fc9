// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// Init is process 1 of a sandbox: it makes the mounts, starts the program, buries every process that ends, and ends
// when the program does or when the outside is gone, which kills the rest. args are those after RoleInit, argv is
// Config.Self. It returns only if it cannot start; otherwise it exits with the program's exit code.
func Init(argv, args []string) error {
	runtime.LockOSThread()
	if len(args) != 1 {
		return errors.New("the sandbox takes one argument; it is started by the playground alone")
	}
	var s setup
	if err := json.Unmarshal([]byte(args[0]), &s); err != nil {
		return fmt.Errorf("reading the sandbox's description: %w", err)
	}
	if !s.Mapped {
		return becomeRoot(argv, s)
	}
	// Set again here, since gaining capabilities clears it.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(syscall.SIGKILL), 0, 0, 0); err != nil {
		return fmt.Errorf("tying the sandbox to its parent: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if err := mountAll(s); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("node")); err != nil {
		return fmt.Errorf("naming the sandbox: %w", err)
	}
	pid, err := startProgram(argv, s)
	if err != nil {
		return err
	}
	os.Exit(bury(pid))
	return nil
}

// becomeRoot waits until the ids are mapped and starts over, which gives root's capabilities to this process: those it
// had were lost when it was started with an id that nobody had mapped yet.
func becomeRoot(argv []string, s setup) error {
	if n, err := os.NewFile(mappedFD, "mapped").Read(make([]byte, 1)); n != 1 {
		return fmt.Errorf("the sandbox's ids were not mapped: %w", err)
	}
	s.Mapped = true
	arg, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("describing the sandbox: %w", err)
	}
	for _, fd := range []uintptr{PlanFD, EventsFD} {
		if _, err := unix.FcntlInt(fd, unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("keeping descriptor %d: %w", fd, err)
		}
	}
	return os.NewSyscallError("exec", syscall.Exec(Self, append(slices.Clone(argv), RoleInit, string(arg)), os.Environ())) //nolint:gosec // this same program
}

func mountAll(s setup) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	// Nothing inside may change the machine's files. Kernels before 5.12 cannot do it in one go and do without.
	attr := &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, attr); err != nil && !errors.Is(err, unix.ENOSYS) {
		return fmt.Errorf("making the machine's files read-only: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc (a container with parts of /proc masked does not allow it): %w", err)
	}
	if err := unix.Mount("tulle", s.Dir, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=0755"); err != nil {
		return fmt.Errorf("mounting a file system in memory on %s: %w", s.Dir, err)
	}
	bin := filepath.Join(s.Dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil { //nolint:gosec // the proxy's user has to reach it
		return fmt.Errorf("sandbox: %w", err)
	}
	for name, source := range s.Bind {
		target := filepath.Join(bin, name)
		if source == Self {
			if err := placeSelf(target); err != nil {
				return err
			}
			continue
		}
		if err := bindFile(source, target); err != nil {
			return err
		}
	}
	return nil
}

// bindFile makes the source appear at target, which it creates if there is none.
func bindFile(source, target string) error {
	f, err := os.OpenFile(target, os.O_CREATE|os.O_RDONLY, 0o600) //nolint:gosec // a path of the sandbox's own
	if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("sandbox: %w", err)
	}
	_ = f.Close()
	if err := unix.Mount(source, target, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("putting %s at %s: %w", source, target, err)
	}
	return nil
}

// placeSelf makes this executable appear at target: mounted if it can be found by its path, else copied.
func placeSelf(target string) error {
	own, err := os.Stat(Self)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if path, err := os.Readlink(Self); err == nil {
		if info, err := os.Stat(path); err == nil && os.SameFile(info, own) {
			return bindFile(path, target)
		}
	}
	in, err := os.Open(Self)
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(target, os.O_CREATE|os.O_WRONLY, 0o755) //nolint:gosec // a program that everybody inside runs
	if err != nil {
		return fmt.Errorf("sandbox: %w", err)
	}
	if _, err := io.Copy(out, in); err != nil {
		return errors.Join(fmt.Errorf("copying this program: %w", err), out.Close())
	}
	if err := out.Close(); err != nil {
		return fmt.Errorf("copying this program: %w", err)
	}
	return nil
}

func startProgram(argv []string, s setup) (int, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("sandbox: %w", err)
	}
	files := []*os.File{null, os.Stderr, os.Stderr, os.NewFile(PlanFD, "plan"), os.NewFile(EventsFD, "events")}
	attr := &os.ProcAttr{Dir: "/", Env: os.Environ(), Files: files}
	p, err := os.StartProcess(Self, slices.Concat(argv, s.Program), attr) //nolint:gosec // it is this program that runs
	if err != nil {
		return 0, fmt.Errorf("starting the program inside: %w", err)
	}
	// The outside sees the end of the events when the program ends, not when this process does.
	closeAll(files[3:]...)
	return p.Pid, nil
}

// bury waits for processes, orphans included, until the one with the pid has ended, and returns its exit code.
func bury(pid int) int {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return 1
		case ended == pid && status.Signaled():
			return 128 + int(status.Signal())
		case ended == pid:
			return status.ExitStatus()
		}
	}
}
