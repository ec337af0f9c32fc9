// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// built makes both images once, from Envoy and a small program that stands for tulle and tulle-agent, and returns the folder they are in.
func built(t *testing.T) string {
	t.Helper()
	envoy, set := os.LookupEnv("TULLE_ENVOY")
	if !set {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		envoy = filepath.Join(cache, "tulle", "envoy", "1.40.0", "envoy")
	}
	if _, err := os.Stat(envoy); err != nil {
		unable(t, "no Envoy: run hack/envoy.sh, or set TULLE_ENVOY: "+err.Error())
	}
	in := inputs{bin: t.TempDir(), envoy: envoy, version: "v1.20.0", repository: "example.org/tulle-mesh", out: t.TempDir()}
	for _, name := range []string{"tulle", "tulle-agent"} {
		if err := os.WriteFile(in.program(name), []byte("#!/bin/sh\necho "+name+" as $(id -u)\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var report bytes.Buffer
	if err := in.build(&report); err != nil {
		if strings.Contains(err.Error(), "apt-get install") {
			unable(t, err.Error())
		}
		t.Fatal(err)
	}
	if got := strings.Count(report.String(), "example.org/tulle-mesh/tulle"); got != 2 {
		t.Errorf("want a line about each image, got:\n%s", &report)
	}
	return in.out
}

func unable(t *testing.T, reason string) {
	t.Helper()
	if _, ci := os.LookupEnv("CI"); ci {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

// unpack lays an image's files out in a folder.
func unpack(t *testing.T, image v1.Image) string {
	t.Helper()
	root := t.TempDir()
	files := mutate.Extract(image)
	defer func() { _ = files.Close() }()
	reader := tar.NewReader(files)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return root
		}
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(root, header.Name)
		switch header.Typeflag {
		case tar.TypeDir:
			err = os.MkdirAll(path, header.FileInfo().Mode())
		case tar.TypeSymlink:
			err = os.Symlink(header.Linkname, path)
		default:
			var content []byte
			if content, err = io.ReadAll(reader); err == nil {
				err = os.WriteFile(path, content, header.FileInfo().Mode())
			}
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// inside runs a command in the unpacked image, as root of a user namespace of its own, and returns what it prints.
func inside(t *testing.T, root string, command ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), command[0], command[1:]...)
	cmd.Dir, cmd.Env = "/", []string{"PATH=/usr/sbin:/usr/bin"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Chroot:      root,
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, syscall.EPERM) && len(out) == 0 {
		unable(t, "no user namespaces: "+err.Error())
	}
	if err != nil {
		t.Errorf("%v: %v\n%s", command, err, out)
	}
	return string(out)
}

func TestImages(t *testing.T) {
	t.Parallel()
	folder := built(t)
	t.Run("say how they run", func(t *testing.T) {
		t.Parallel()
		sayHowTheyRun(t, folder)
	})
	image, err := tarball.ImageFromPath(filepath.Join(folder, "tulle-agent.tar"), nil)
	if err != nil {
		t.Fatal(err)
	}
	root := unpack(t, image)
	for name, c := range map[string]struct {
		command []string
		want    string
	}{
		"Envoy starts with its libraries":        {[]string{"/usr/bin/envoy", "--version"}, "/1.40.0/"},
		"curl starts with its libraries":         {[]string{"/usr/bin/curl", "--version"}, "libcurl"},
		"the plain iptables is the nft one":      {[]string{"/usr/sbin/iptables", "--version"}, "nf_tables"},
		"the legacy iptables is there":           {[]string{"/usr/sbin/ip6tables-legacy", "--version"}, "legacy"},
		"iptables finds its extensions":          {[]string{"/usr/sbin/iptables", "-m", "owner", "-j", "REDIRECT", "--help"}, "owner match options"},
		"a shell and ls":                         {[]string{"/bin/sh", "-c", "ls -d /etc/ssl/certs"}, "/etc/ssl/certs"},
		"the user that Envoy runs as has a name": {[]string{"/bin/sh", "-c", "grep 1337 /etc/passwd"}, "envoy:x:1337:1337"},
		"the agent is in the path":               {[]string{"/bin/sh", "-c", "tulle-agent"}, "tulle-agent as 0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := inside(t, root, c.command...); !strings.Contains(got, c.want) {
				t.Errorf("%v: want %q in\n%s", c.command, c.want, got)
			}
		})
	}
}

func sayHowTheyRun(t *testing.T, folder string) {
	t.Helper()
	for title, want := range map[string]v1.Config{
		"tulle":       {Entrypoint: []string{"/usr/bin/tulle"}, User: "65532", Env: []string{"PATH=/usr/bin"}},
		"tulle-agent": {Entrypoint: []string{"/usr/bin/tulle-agent"}, Cmd: []string{"run"}, User: "1337", Env: []string{"PATH=/usr/sbin:/usr/bin"}},
	} {
		image, err := tarball.ImageFromPath(filepath.Join(folder, title+".tar"), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		want.Labels = inputs{version: "v1.20.0"}.labels(title)
		if diff := cmp.Diff(want, got.Config); diff != "" {
			t.Errorf("%s (-want +got):\n%s", title, diff)
		}
	}
}

func TestWhatIsMissingIsSaidInOneLine(t *testing.T) {
	t.Parallel()
	err := inputs{bin: t.TempDir(), envoy: "/nowhere/envoy", version: "v1", out: t.TempDir()}.build(io.Discard)
	if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), "tulle") {
		t.Errorf("want one line that names what is missing, got %v", err)
	}
}
