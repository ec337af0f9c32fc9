// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// reachable fails if a user, whose group has the same number, may not enter a directory on the way to the path or may not enter or execute the path itself.
func reachable(path string, id uint32) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	if path, err = filepath.Abs(path); err != nil {
		return err
	}
	for at := path; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return err
		}
		if !mayExecute(info, id) {
			return fmt.Errorf("user %d may not pass %s (%s): open it with chmod a+x, take another path, or run Envoy as the agent's own user with --uid 0", id, at, info.Mode())
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
}

func mayExecute(info os.FileInfo, id uint32) bool {
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case id == 0:
		return true
	case ok && owner.Uid == id:
		return info.Mode()&0o100 != 0
	case ok && owner.Gid == id:
		return info.Mode()&0o010 != 0
	default:
		return info.Mode()&0o001 != 0
	}
}
