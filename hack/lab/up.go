// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/tulle-mesh/tulle/hack/image/pack"
)

//go:embed all:rootfs
var rootfs embed.FS

//go:embed manifests/coredns.yaml
var corednsManifest string

// cniFolder is where Debian keeps the CNI plugins.
const cniFolder = "/usr/lib/cni"

// missing says in one line what the machine lacks.
func missing() error {
	if os.Getuid() != 0 {
		return errors.New("the lab needs root: it makes namespaces, mounts and control groups")
	}
	return pack.Missing(append(helloNeeds(),
		pack.Need{File: "/usr/bin/containerd", Package: "containerd"}, pack.Need{File: "/usr/sbin/runc", Package: "runc"},
		pack.Need{File: cniFolder + "/bridge", Package: "containernetworking-plugins"},
		pack.Need{File: "/usr/sbin/iptables", Package: "iptables"}, pack.Need{File: "/sbin/ip", Package: "iproute2"})...)
}

// up brings the cluster up and returns when pods can be made and names resolve. Where it runs already there is nothing to do.
func (l lab) up(ctx context.Context, p progress) error {
	if err := missing(); err != nil {
		return err
	}
	lock, err := l.alone()
	if err != nil {
		return err
	}
	defer func() { _ = lock.Close() }()
	if err := l.buildComponents(ctx, p); err != nil {
		return err
	}
	pid, err := l.first()
	if err != nil {
		return err
	}
	if pid != 0 {
		p.say("the lab %q runs already", l.name)
		return l.tellHow(p)
	}
	// What a cluster that was killed left behind goes first.
	if err := l.clean(); err != nil {
		return err
	}
	ended, err := l.start(p)
	if err != nil {
		return err
	}
	err = l.waitUntilReady(ctx, p, ended)
	switch {
	case ctx.Err() != nil:
		return errors.Join(errors.New("interrupted"), l.end(), l.clean())
	case err != nil:
		return errors.Join(err, l.end(), l.removeCgroups(), fmt.Errorf("what the node's services said is in %s", l.in("logs")))
	}
	return l.tellHow(p)
}

func (l lab) tellHow(p progress) error {
	_, err := fmt.Fprintf(p.out, "\nUse it: eval \"$(hack/lab/env)\", then kubectl and helm; or hack/lab/kubectl and hack/lab/helm.\nImages: hack/lab/push dist/*.tar. End it: make lab-down.\n")
	return err
}

// start lays out the node's files and starts its first process. The channel tells when that ends.
func (l lab) start(p progress) (<-chan error, error) {
	if err := os.MkdirAll(l.in("logs"), 0o750); err != nil {
		return nil, err
	}
	api, err := listen()
	if err != nil {
		return nil, err
	}
	registry, err := listen()
	if err != nil {
		return nil, err
	}
	if err := l.layOut(p, api.Name(), registry.Name()); err != nil {
		return nil, err
	}
	if err := l.makeCgroups(); err != nil {
		return nil, err
	}
	ended, err := l.startNode(api, registry)
	if err != nil {
		return nil, err
	}
	return ended, errors.Join(api.Close(), registry.Close())
}

// listen takes a free port of this machine's loopback, and returns a file that is named after its address.
func listen() (*os.File, error) {
	listener, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, err
	}
	defer func() { _ = listener.Close() }()
	file, err := listener.File()
	if err != nil {
		return nil, err
	}
	descriptor, err := unix.Dup(int(file.Fd()))
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(descriptor), listener.Addr().String()), file.Close()
}

// layOut writes the node's own files, and what people on the machine need to reach it.
func (l lab) layOut(p progress, api, registry string) error {
	upper := l.in("upper")
	files, err := fs.Sub(rootfs, "rootfs")
	if err != nil {
		return err
	}
	if err := os.CopyFS(upper, files); err != nil {
		return err
	}
	kubelet := filepath.Join(upper, "etc/kubernetes/kubelet.yaml")
	text, err := os.ReadFile(kubelet) //nolint:gosec // a file that was written a moment ago
	if err != nil {
		return err
	}
	if err := os.WriteFile(kubelet, []byte(strings.ReplaceAll(string(text), "@CGROUP@", l.cgroup())), 0o600); err != nil { //nolint:gosec // as above
		return err
	}
	if err := copyFolder(filepath.Join(upper, "opt/cni/bin"), cniFolder); err != nil {
		return err
	}
	authority, err := newAuthority(p.begin)
	if err != nil {
		return err
	}
	admin, err := writePKI(filepath.Join(upper, "etc/kubernetes"), authority, []string{
		"127.0.0.1", nodeIP, nodeIP6, apiService, "localhost",
		"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local",
	})
	if err != nil {
		return err
	}
	config, err := authority.kubeconfig("https://"+api, admin)
	if err != nil {
		return err
	}
	if err := os.WriteFile(l.kubeconfig(), config, 0o600); err != nil {
		return err
	}
	if err := os.MkdirAll(l.in("bin"), 0o750); err != nil {
		return err
	}
	for _, name := range []string{"kubectl", "helm"} {
		if err := os.Symlink(l.tool(name), l.in("bin", name)); err != nil {
			return err
		}
	}
	return os.WriteFile(l.in("registry"), []byte(registry), 0o600)
}

// copyFolder copies the files of a folder, through links.
func copyFolder(to, from string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil { //nolint:gosec // a folder of a node, which its pods may look into
		return err
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(from, entry.Name())) //nolint:gosec // a folder of Debian's
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(to, entry.Name()), content, 0o755); err != nil { //nolint:gosec // plugins are programs
			return err
		}
	}
	return nil
}

// startNode starts this program again as process 1 of new namespaces. It lives on when this one ends.
func (l lab) startNode(api, registry *os.File) (<-chan error, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	log, err := os.OpenFile(l.in("logs", "node.log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer func() { _ = log.Close() }()
	cmd := exec.Command(self, nodeVerb) //nolint:gosec,noctx // this program itself; it outlives every context
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{api, registry}
	cmd.SysProcAttr = &unix.SysProcAttr{
		Setsid:     true,
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC,
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("making the node's namespaces: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return ended, nil
}
