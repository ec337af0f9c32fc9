// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// reapOrphans buries processes that the kernel hands to process 1 when their parents end. Envoy itself is left to the one who waits for it.
func reapOrphans(ctx context.Context, isOurs func(pid int) bool) error {
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	defer signal.Stop(ended)
	for {
		if err := reapEnded(isOurs); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ended:
		}
	}
}

// reapEnded buries all children of this process that have ended, but for ours.
func reapEnded(isOurs func(pid int) bool) error {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return fmt.Errorf("look for ended children: %w", err)
	}
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(filepath.Join("/proc", entry.Name(), "stat"))
		if err != nil || !endedChild(string(stat), os.Getpid()) || isOurs(pid) {
			continue // gone meanwhile, or not to be buried here
		}
		if _, err := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); err != nil && !errors.Is(err, syscall.ECHILD) {
			return fmt.Errorf("bury child %d: %w", pid, err)
		}
	}
	return nil
}

// endedChild reads from /proc/PID/stat whether a process has ended and is a child of the parent. The name before the state may hold anything, a parenthesis too.
func endedChild(stat string, parent int) bool {
	_, rest, found := cutLast(stat, ") ")
	fields := strings.Fields(rest)
	return found && len(fields) > 1 && fields[0] == "Z" && fields[1] == strconv.Itoa(parent)
}

// cutLast splits at the last separator.
func cutLast(s, separator string) (before, after string, found bool) {
	i := strings.LastIndex(s, separator)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(separator):], true
}
