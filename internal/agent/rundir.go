// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// prepareRunDir makes the run directory and takes it for this agent alone. Others may enter it, for Envoy runs as another user, but not write to it.
func prepareRunDir(dir string) (unlock func(), err error) {
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // G301: Envoy runs as another user and must enter it
		return nil, fmt.Errorf("make the run directory: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return nil, fmt.Errorf("look at the run directory: %w", err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); !info.IsDir() || !ok || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("run directory %s is not a directory that this user alone may write to: give another one with --run-dir", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("open the run directory: %w", err)
	}
	lock, err := root.OpenFile("agent.lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err := errors.Join(err, root.Close()); err != nil {
		return nil, fmt.Errorf("lock the run directory: %w", err)
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("another tulle-agent uses run directory %s: give each its own with --run-dir", dir), lock.Close())
	}
	return func() { _ = lock.Close() }, nil // the lock ends with the file or with the process
}

// listenUnix makes a unix socket that this user alone may use, in place of one that an agent before this one left.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the old socket: %w", err)
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "unix", path)
	if err != nil {
		return nil, err
	}
	if err := os.Chmod(path, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("close the socket to others: %w", err), listener.Close())
	}
	return listener, nil
}
