// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// down ends the cluster and leaves the machine as it was before up: nothing but the cache of programs stays.
func (l lab) down(out io.Writer) error {
	if err := l.end(); err != nil {
		return err
	}
	if err := l.clean(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "the lab %q is down\n", l.name)
	return err
}

// end kills the cluster's first process. The kernel then kills all others, and takes mounts and network with them.
func (l lab) end() error {
	pid, err := l.first()
	if err != nil || pid == 0 {
		return err
	}
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return fmt.Errorf("process %d: %w", pid, err)
	}
	defer func() { _ = unix.Close(process) }()
	if err := unix.PidfdSendSignal(process, unix.SIGKILL, nil, 0); err != nil {
		return fmt.Errorf("ending process %d: %w", pid, err)
	}
	// Its end is only told when the last process of its namespace is gone.
	const patience = 30 * time.Second
	for {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(process), Events: unix.POLLIN}}, int(patience.Milliseconds())) //nolint:gosec // a descriptor is small
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return fmt.Errorf("waiting for the end of process %d: %w", pid, err)
		case n == 0:
			return fmt.Errorf("process %d was killed and is still there after %s", pid, patience)
		default:
			return nil
		}
	}
}

// clean removes what is left on disk and in the control groups.
func (l lab) clean() error {
	if err := l.removeCgroups(); err != nil {
		return fmt.Errorf("removing control groups: %w", err)
	}
	return os.RemoveAll(l.state)
}
