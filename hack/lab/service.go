// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// A service is a program that the node keeps running.
type service struct {
	name string
	path string
	args []string
}

// A keeper starts services and starts them again when they end. It also buries what the node's other processes leave behind, as process 1 must; therefore
// nobody else in this process may wait for a child once it keeps its first service.
type keeper struct {
	log     *slog.Logger
	logs    string
	mu      sync.Mutex
	running map[int]service
	reaping bool
}

// start runs a service, now and for ever. Its output goes to a file of its name.
func (k *keeper) start(s service) error {
	out, err := os.OpenFile(filepath.Join(k.logs, s.name+".log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = out.Close() }()
	cmd := exec.Command(s.path, s.args...) //nolint:gosec,noctx // the commands are written in node.go, and live as long as the node
	cmd.Stdout, cmd.Stderr = out, out
	k.mu.Lock()
	defer k.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", s.name, err)
	}
	k.running[cmd.Process.Pid] = s
	if !k.reaping {
		k.reaping = true
		go k.reap()
	}
	return nil
}

func (k *keeper) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if err != nil { // no child at all just now: each service is between two lives
			time.Sleep(100 * time.Millisecond)
			continue
		}
		k.mu.Lock()
		s, ours := k.running[pid]
		delete(k.running, pid)
		k.mu.Unlock()
		if ours {
			k.log.Warn("a service ended; it starts again in a second", "service", s.name, "code", status.ExitStatus(), "signal", status.Signal().String())
			time.AfterFunc(time.Second, func() { k.restart(s) })
		}
	}
}

func (k *keeper) restart(s service) {
	if err := k.start(s); err != nil {
		k.log.Error("a service does not start", "service", s.name, "error", err)
	}
}
