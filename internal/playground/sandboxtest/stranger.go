// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package sandboxtest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// Dir is where the stranger finds programs that lie where only root goes.
const Dir = "/mnt"

const id = 54321

// ExecAsStranger runs argv, by way of this executable, as the stranger, a normal user with a range of subordinate
// ids, in place of this process: which must be root's, and must have been started with a mount namespace of its own. programs appear in Dir: name to path. It returns only if it cannot.
func ExecAsStranger(programs map[string]string, argv, env []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("stranger: %w", err)
	}
	// Everything that is made goes into memory that nobody else sees.
	if err := unix.Mount("stranger", Dir, "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("stranger: %w", err)
	}
	for file, line := range map[string]string{
		"passwd": "stranger:x:54321:54321::/:/bin/sh\n", "group": "stranger:x:54321:\n",
		"subuid": "stranger:700000:65536\n", "subgid": "stranger:700000:65536\n",
	} {
		if err := appendTo("/etc/"+file, filepath.Join(Dir, file), line); err != nil {
			return fmt.Errorf("stranger: %w", err)
		}
	}
	for name, path := range programs {
		target := filepath.Join(Dir, name)
		if err := errors.Join(os.WriteFile(target, nil, 0o600), unix.Mount(path, target, "", unix.MS_BIND, "")); err != nil {
			return fmt.Errorf("stranger: %s: %w", path, err)
		}
	}
	if err := errors.Join(syscall.Setgroups(nil), syscall.Setgid(id), syscall.Setuid(id)); err != nil {
		return fmt.Errorf("stranger: %w", err)
	}
	return os.NewSyscallError("exec", syscall.Exec("/proc/self/exe", argv, env)) //nolint:gosec // it is the test itself that runs
}

// appendTo makes the file look, in this mount namespace, as if the line were at its end.
func appendTo(file, copied, line string) error {
	was, err := os.ReadFile(file) //nolint:gosec // one of the four above
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s is missing: apt-get install uidmap", file)
	}
	if err := os.WriteFile(copied, append(was, line...), 0o644); err != nil { //nolint:gosec // everybody reads these files
		return err
	}
	return unix.Mount(copied, file, "", unix.MS_BIND, "")
}
