// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package sandboxtest shows tests what a sandbox leaves behind, and lets those that run as root be a normal user; tests
// alone may call it.
package sandboxtest

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/tulle-mesh/tulle/internal/agent/envoytest"
)

// Need ends a test that this user cannot run: one that is neither root nor has ids to map into a user namespace.
func Need(t *testing.T) {
	t.Helper()
	if os.Geteuid() == 0 {
		return
	}
	who, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	ranges, err := os.ReadFile("/etc/subuid")
	if err != nil || !slices.ContainsFunc(strings.Split(string(ranges), "\n"), func(line string) bool {
		return strings.HasPrefix(line, who.Username+":") || strings.HasPrefix(line, who.Uid+":")
	}) {
		envoytest.Unable(t, "needs root, or a range of ids in /etc/subuid")
	}
}

// Inside lists the processes in the sandbox that the process has started.
func Inside(t *testing.T, parent int) []int {
	t.Helper()
	own, err := os.Readlink("/proc/self/ns/pid")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		t.Fatal(err)
	}
	byNamespace := map[string][]int{}
	wanted := "none"
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
		if parentOf(e.Name()) == parent {
			wanted = ns
		}
	}
	return byNamespace[wanted]
}

// parentOf reads the parent from /proc/PID/stat; 0 if the process has gone.
func parentOf(pid string) int {
	stat, err := fs.ReadFile(os.DirFS("/proc"), pid+"/stat")
	if err != nil {
		return 0
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) < 2 {
		return 0
	}
	parent, err := strconv.Atoi(fields[1])
	if err != nil {
		return 0
	}
	return parent
}

// Gone fails the test unless the processes have ended, or do within ten seconds.
func Gone(t *testing.T, pids []int) {
	t.Helper()
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if errors.Is(err, unix.ESRCH) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 10_000) //nolint:gosec // descriptors are small
		if err != nil || n != 1 {
			t.Errorf("process %d of the sandbox is still there: %v", pid, err)
		}
		_ = unix.Close(fd)
	}
}

// Surroundings are the mounts and the network links of the machine, and the files in the directories.
func Surroundings(t *testing.T, dirs ...string) []string {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	found := append(strings.Split(string(mounts), "\n"), Links()...)
	for _, dir := range append(dirs, "/run/netns") {
		entries, err := os.ReadDir(dir)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		for _, e := range entries {
			// Other tests run their Envoys beside this one, in the open.
			if !strings.HasPrefix(e.Name(), "envoy_shared_memory_") {
				found = append(found, filepath.Join(dir, e.Name()))
			}
		}
	}
	return found
}

// Links lists the network links that this process sees.
func Links() []string {
	data, err := os.ReadFile("/proc/self/net/dev")
	if err != nil {
		return []string{err.Error()}
	}
	var names []string
	for line := range strings.Lines(string(data)) {
		if name, _, ok := strings.Cut(line, ":"); ok {
			names = append(names, strings.TrimSpace(name))
		}
	}
	return names
}
