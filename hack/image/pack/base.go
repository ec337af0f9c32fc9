// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package pack

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
)

// A Need is a file of this machine that an image is made from, and Debian's package that has it.
type Need struct{ File, Package string }

// Missing says in one line which of the files are not there and how to get them, or nil.
func Missing(needs ...Need) error {
	var files, packages []string
	for _, need := range needs {
		if _, err := os.Stat(need.File); err == nil {
			continue
		}
		files = append(files, need.File)
		if !strings.Contains(" "+strings.Join(packages, " ")+" ", " "+need.Package+" ") {
			packages = append(packages, need.Package)
		}
	}
	if files == nil {
		return nil
	}
	return fmt.Errorf("missing: %s: apt-get install %s", strings.Join(files, " "), strings.Join(packages, " "))
}

// The files that Base and Shell are made from.
const (
	certificates = "/etc/ssl/certs/ca-certificates.crt"
	busybox      = "/bin/busybox"
)

// BaseNeeds are what Base and Shell take from this machine.
func BaseNeeds() []Need {
	return []Need{{certificates, "ca-certificates"}, {busybox, "busybox-static"}}
}

// Base is what every image begins with: the folders of a merged /usr, the world's certificate authorities, and a user called name with that number beside root.
func Base(name string, id int) *Tree {
	t := &Tree{}
	for _, dir := range []string{"bin", "sbin", "lib", "lib64"} {
		t.Dir("/usr/"+dir, 0o755)
		t.Link("/"+dir, "usr/"+dir)
	}
	t.Dir("/run", 0o755) // where iptables has its lock
	t.Dir("/tmp", 0o777|fs.ModeSticky)
	t.Copy("/etc/ssl/certs/ca-certificates.crt", certificates)
	t.Write("/etc/passwd", fmt.Sprintf("root:x:0:0:root:/root:/bin/sh\n%s:x:%d:%d:%s:/tmp:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n", name, id, id, name))
	t.Write("/etc/group", fmt.Sprintf("root:x:0:\n%s:x:%d:\nnogroup:x:65534:\n", name, id))
	t.Write("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")
	return t
}

// Shell adds busybox under the name of every program that it plays, except where the tree has one of that name already or gets it later.
func (t *Tree) Shell() {
	list, err := exec.Command(busybox, "--list").Output() //nolint:noctx // it prints a list that is built into it
	if err != nil {
		t.faults = append(t.faults, fmt.Errorf("%s --list: %w", busybox, err))
		return
	}
	t.Program("/usr/bin/busybox", busybox)
	for applet := range strings.FieldsSeq(string(list)) {
		if !t.has("/usr/bin/" + applet) {
			t.Link("/usr/bin/"+applet, "busybox")
		}
	}
}
