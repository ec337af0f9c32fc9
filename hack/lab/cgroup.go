// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const cgroups = "/sys/fs/cgroup"

// cgroup is the name of the group that all pods of this lab are in.
func (l lab) cgroup() string { return "tulle-" + l.name }

// unified is version 2's place on a machine of version 1. It has no controllers, but runc makes groups there too.
const unified = "unified"

// hierarchies are the folders that hold a group each: the one of version 2, or those of version 1.
func hierarchies() ([]string, error) {
	if _, err := os.Stat(filepath.Join(cgroups, "cgroup.controllers")); err == nil {
		return []string{cgroups}, nil
	}
	entries, err := os.ReadDir(cgroups)
	if err != nil {
		return nil, err
	}
	var folders []string
	for _, entry := range entries {
		if entry.IsDir() {
			folders = append(folders, filepath.Join(cgroups, entry.Name()))
		}
	}
	if folders == nil {
		return nil, fmt.Errorf("%s is empty: the lab needs control groups, of version 1 or 2", cgroups)
	}
	return folders, nil
}

// makeCgroups makes the group that kubelet wants to find.
func (l lab) makeCgroups() error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		if filepath.Base(folder) == unified {
			continue
		}
		group := filepath.Join(folder, l.cgroup())
		if err := os.MkdirAll(group, 0o750); err != nil {
			return err
		}
		switch filepath.Base(folder) {
		case "cpuset": // a new group of it has no processor, and takes no process
			for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
				content, err := os.ReadFile(filepath.Join(folder, file)) //nolint:gosec // a file of the kernel
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(group, file), content, 0o600); err != nil { //nolint:gosec // a file of the kernel
					return err
				}
			}
		case filepath.Base(cgroups): // version 2: a group has the controllers that the one above hands down
			for _, above := range []string{folder, group} {
				if err := os.WriteFile(filepath.Join(above, "cgroup.subtree_control"), []byte("+cpuset +cpu +memory +pids"), 0o600); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// removeCgroups takes the groups away, from the leaves up. The kernel may need a moment to see that their processes are gone.
func (l lab) removeCgroups() error {
	folders, err := hierarchies()
	if err != nil {
		return err
	}
	for _, folder := range folders {
		group := filepath.Join(folder, l.cgroup())
		for attempt := range 50 {
			if err = removeGroup(group); err == nil || !errors.Is(err, unix.EBUSY) {
				break
			}
			time.Sleep(time.Duration(attempt) * 10 * time.Millisecond)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func removeGroup(group string) error {
	entries, err := os.ReadDir(group)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.IsDir() {
			continue
		}
		if err := removeGroup(filepath.Join(group, entry.Name())); err != nil {
			return err
		}
	}
	return os.Remove(group)
}
