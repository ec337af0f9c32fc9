// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package redirect

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tulle-mesh/tulle/internal/agent/envoytest"
)

// insideKey is the variable that makes this test binary check the redirect in the namespaces that it finds itself in.
const insideKey = "TULLE_REDIRECT_TEST_INSIDE"

func TestMain(m *testing.M) {
	part, inside := os.LookupEnv(insideKey)
	if !inside {
		os.Exit(m.Run())
	}
	check := checkTraffic
	if part == "single" {
		check = checkSingleUser
	}
	if err := check(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestRedirectCapturesTrafficInANamespace(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("root's own namespaces; those of other users are tested beside this")
	}
	command := inside(t, "traffic")
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET | syscall.CLONE_NEWNS}
	runInside(t, command)
}

func TestRedirectCapturesTrafficInAUserNamespace(t *testing.T) {
	t.Parallel()
	command := inside(t, "traffic")
	if os.Geteuid() == 0 {
		// Root may map ids by itself.
		all := []syscall.SysProcIDMap{{ContainerID: 0, HostID: 0, Size: 65536}}
		command.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
			UidMappings: all, GidMappings: all, GidMappingsEnableSetgroups: true,
		}
	} else {
		unshare := []string{"unshare", "--user", "--map-root-user", "--map-auto", "--net", "--mount"}
		if out, err := exec.CommandContext(t.Context(), unshare[0], append(unshare[1:], "true")...).CombinedOutput(); err != nil {
			envoytest.Unable(t, fmt.Sprintf("no user namespace with a range of ids (apt-get install uidmap, and a range in /etc/subuid and /etc/subgid): %v: %s", err, out))
		}
		command.Args = slices.Concat(unshare, []string{command.Path})
		path, err := exec.LookPath(unshare[0])
		if err != nil {
			t.Fatal(err)
		}
		command.Path = path
	}
	runInside(t, command)
}

func TestRedirectSaysInOneLineThatASingleMappedUserIsTooFew(t *testing.T) {
	t.Parallel()
	command := inside(t, "single")
	command.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	runInside(t, command)
}

func inside(t *testing.T, part string) *exec.Cmd {
	t.Helper()
	for _, name := range []string{"iptables-restore", "ip6tables-restore"} {
		if _, err := exec.LookPath(name); err != nil {
			envoytest.Unable(t, name+" is missing: apt-get install iptables")
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), self)
	command.Env = append(os.Environ(), insideKey+"="+part)
	return command
}

func runInside(t *testing.T, command *exec.Cmd) {
	t.Helper()
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	err := command.Run()
	if err != nil && strings.Contains(err.Error(), "fork/exec") {
		envoytest.Unable(t, "namespaces cannot be made here: "+err.Error())
	}
	if err != nil {
		t.Errorf("inside: %v\n%s", err, out.String())
	}
}
