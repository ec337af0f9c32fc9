// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// The node's files are this machine's with a layer of the cluster's own on top: everything lies where a node has it, and nothing that is written there
// reaches the machine.

// diskFolders are on the disk itself. An overlay cannot lie on an overlay's upper layer, and containers' files are overlays.
var diskFolders = []string{"/var/lib/containerd", "/var/lib/kubelet", "/var/lib/etcd"}

// foreignSettings are what kubelet sets for the whole machine. The node sees files of its own in their place, which hold what kubelet wants to find.
var foreignSettings = map[string]string{
	"vm/overcommit_memory": "1", "vm/panic_on_oom": "0", "kernel/panic": "10", "kernel/panic_on_oops": "1",
	"kernel/keys/root_maxkeys": "1000000", "kernel/keys/root_maxbytes": "25000000",
}

type mount struct {
	what, where, kind string
	flags             uintptr
	options           string
}

func (m mount) do() error {
	if err := os.MkdirAll(m.where, 0o755); err != nil { //nolint:gosec // folders of a node, which its pods may look into
		return err
	}
	if err := unix.Mount(m.what, m.where, m.kind, m.flags, m.options); err != nil {
		return fmt.Errorf("mounting %s on %s: %w", m.what, m.where, err)
	}
	return nil
}

// enterRoot makes the node's root and makes it this process's. The process must be alone in its mount namespace.
func (l lab) enterRoot() error {
	root := l.in("root")
	layers := []string{"/", l.in("upper"), l.in("work")}
	if strings.ContainsAny(l.state, ":,\\") {
		return fmt.Errorf("%s: an overlay takes no path with a colon, a comma or a backslash: set XDG_CACHE_HOME", l.state)
	}
	mounts := []mount{
		{where: "/", what: "none", flags: unix.MS_REC | unix.MS_PRIVATE},
		{what: "overlay", where: root, kind: "overlay", options: fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", layers[0], layers[1], layers[2])},
		{what: "proc", where: root + "/proc", kind: "proc"},
		{what: "sysfs", where: root + "/sys", kind: "sysfs"}, // one of its own, since it shows the network of whoever mounts it
		{what: cgroups, where: root + cgroups, flags: unix.MS_BIND | unix.MS_REC},
		{what: "/dev", where: root + "/dev", flags: unix.MS_BIND | unix.MS_REC},
		{what: "run", where: root + "/run", kind: "tmpfs", options: "mode=755"},
		{what: "tmp", where: root + "/tmp", kind: "tmpfs", options: "mode=1777"},
		{what: l.cache, where: root + l.cache, flags: unix.MS_BIND},
	}
	for _, folder := range diskFolders {
		disk := l.in("disk", folder)
		if err := os.MkdirAll(disk, 0o750); err != nil {
			return err
		}
		mounts = append(mounts, mount{what: disk, where: root + folder, flags: unix.MS_BIND})
	}
	for _, folder := range []string{layers[1], layers[2], root} {
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // the node's root, which its pods may look into
			return err
		}
	}
	for _, m := range mounts {
		if err := m.do(); err != nil {
			return err
		}
	}
	if err := l.hideSettings(root); err != nil {
		return err
	}
	return changeRoot(root)
}

// hideSettings lays files over the settings that kubelet would change for the whole machine.
func (l lab) hideSettings(root string) error {
	for name, value := range foreignSettings {
		setting := filepath.Join(root, "proc/sys", name)
		if _, err := os.Stat(setting); err != nil {
			continue // this kernel does not have it, so nobody can change it
		}
		file := l.in("settings", strings.ReplaceAll(name, "/", "."))
		if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(value+"\n"), 0o600); err != nil {
			return err
		}
		if err := unix.Mount(file, setting, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("hiding %s: %w", setting, err)
		}
	}
	return nil
}

// changeRoot leaves the old root behind for good.
func changeRoot(root string) error {
	if err := os.Chdir(root); err != nil {
		return err
	}
	err := errors.Join(unix.PivotRoot(".", "."), unix.Unmount(".", unix.MNT_DETACH), os.Chdir("/"))
	if err != nil {
		return fmt.Errorf("changing to the node's root: %w", err)
	}
	// Pods may ask for mounts that travel between them and the node.
	return unix.Mount("none", "/", "", unix.MS_REC|unix.MS_SHARED, "")
}
