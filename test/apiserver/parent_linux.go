// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package apiserver

import "syscall"

// endWithParent makes a program end with the test, even where the test is killed.
func endWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
