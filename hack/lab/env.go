// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/unix"
)

// printEnv prints what a shell needs to use the cluster: eval "$(hack/lab/env)".
func (l lab) printEnv(out io.Writer) error {
	if _, err := l.running(); err != nil {
		return err
	}
	registry, err := os.ReadFile(l.in("registry"))
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "export KUBECONFIG='%s'\nexport PATH='%s':\"$PATH\"\nexport TULLE_LAB_REGISTRY=%s\n", l.kubeconfig(), l.in("bin"), registry)
	return err
}

// enter runs a command on the node, in place of this process.
func (l lab) enter(command []string) error {
	pid, err := l.running()
	if err != nil {
		return err
	}
	nsenter, err := exec.LookPath("nsenter")
	if err != nil {
		return fmt.Errorf("%w: apt-get install util-linux", err)
	}
	args := append([]string{nsenter, "--target", strconv.Itoa(pid), "--mount", "--net", "--pid", "--uts", "--ipc", "--"}, command...)
	return unix.Exec(nsenter, args, os.Environ())
}
