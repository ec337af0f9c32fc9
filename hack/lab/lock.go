// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// The cluster's first process holds a lock on a file as long as it lives, and the kernel knows by which process: no process number on disk can be out of date.

// hold takes the lock for the rest of this process's life.
func (l lab) hold() error {
	// A bare descriptor, which stays open: an os.File is closed when nothing refers to it any more, and closing it would give the lock back.
	file, err := unix.Open(l.in("lock"), unix.O_RDWR|unix.O_CREAT|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return fmt.Errorf("opening %s: %w", l.in("lock"), err)
	}
	if err := unix.FcntlFlock(uintptr(file), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK}); err != nil {
		return fmt.Errorf("the lab %q runs already: %w", l.name, err)
	}
	return nil
}

// first is the process number, as seen from here, of the cluster's first process; 0 where none runs.
func (l lab) first() (int, error) {
	file, err := os.OpenFile(l.in("lock"), os.O_RDWR, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer func() { _ = file.Close() }()
	lock := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(file.Fd(), unix.F_GETLK, &lock); err != nil {
		return 0, fmt.Errorf("asking who holds %s: %w", file.Name(), err)
	}
	if lock.Type == unix.F_UNLCK {
		return 0, nil
	}
	return int(lock.Pid), nil
}

// running is first, and an error where no cluster runs.
func (l lab) running() (int, error) {
	pid, err := l.first()
	if err == nil && pid == 0 {
		err = fmt.Errorf("no lab %q is running: make lab", l.name)
	}
	return pid, err
}
