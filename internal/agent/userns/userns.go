// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package userns tells what the user namespace of this process allows; the agent and its redirect call it.
package userns

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
)

// CheckUser fails if this process's user namespace has no user of that number, as one that was made with a single mapped id has none but 0.
func CheckUser(id uint32) error {
	content, err := os.ReadFile("/proc/self/uid_map")
	return check(content, err, "user", id)
}

// CheckGroup is CheckUser for a group.
func CheckGroup(id uint32) error {
	content, err := os.ReadFile("/proc/self/gid_map")
	return check(content, err, "group", id)
}

func check(content []byte, err error, kind string, id uint32) error {
	if err != nil {
		return fmt.Errorf("read the user namespace's ids: %w", err)
	}
	mapped, err := holds(content, id)
	if err != nil {
		return fmt.Errorf("read the user namespace's %ss: %w", kind, err)
	}
	if !mapped {
		return fmt.Errorf("this user namespace has no %s %d: make it with a range of ids (unshare --map-root-user --map-auto, which needs apt-get install uidmap and a range in /etc/subuid and /etc/subgid)", kind, id)
	}
	return nil
}

// holds says whether a map of ids, as the kernel prints it (first id inside, first outside, how many), has the id inside.
func holds(content []byte, id uint32) (bool, error) {
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		var inside, outside, length uint64
		if _, err := fmt.Sscan(lines.Text(), &inside, &outside, &length); err != nil {
			return false, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		if uint64(id) >= inside && uint64(id) < inside+length {
			return true, nil
		}
	}
	return false, lines.Err()
}
