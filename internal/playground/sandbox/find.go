// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package sandbox

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Running is a pod that runs on this machine.
type Running struct {
	PodConfig
	// PID is the process that holds the pod's namespaces, as seen from outside.
	PID int `json:"pid"`
}

// Find lists the pods of all sandboxes that this user may enter, sorted by namespace and name.
func Find() ([]Running, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("looking for pods: %w", err)
	}
	var found []Running
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		// A process that has gone meanwhile, or that is none of ours, is no pod.
		line, err := os.ReadFile(filepath.Join("/proc", e.Name(), "cmdline"))
		if err != nil {
			continue
		}
		if _, err := os.Readlink(filepath.Join("/proc", e.Name(), "ns/net")); err != nil {
			continue
		}
		args := bytes.Split(bytes.TrimSuffix(line, []byte{0}), []byte{0})
		n := len(args)
		if n < 3 || string(args[n-2]) != RolePod {
			continue
		}
		running := Running{PID: pid}
		if err := json.Unmarshal(args[n-1], &running.PodConfig); err == nil && running.Name != "" {
			found = append(found, running)
		}
	}
	slices.SortFunc(found, func(a, b Running) int {
		return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.PID, b.PID))
	})
	return found, nil
}

// NSEnter is the command that runs a program in the pod from outside, by nsenter of util-linux.
func (r Running) NSEnter(program ...string) []string {
	args := []string{"nsenter", "--target", strconv.Itoa(r.PID)}
	if os.Geteuid() != 0 {
		args = append(args, "--user", "--preserve-credentials")
	}
	return append(append(args, "--net", "--mount", "--uts", "--"), program...)
}
