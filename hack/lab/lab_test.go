// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/tulle-mesh/tulle/hack/image/pack"
)

func TestALabIsNamedByTheEnvironment(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", "/cache")
	for given, want := range map[string]string{
		"":       "/cache/tulle/lab/state/lab",
		"second": "/cache/tulle/lab/state/second",
		"../x":   "TULLE_LAB=\"../x\": a lab's name is of lower-case letters, digits and hyphens, 31 at most",
		"a/b":    "TULLE_LAB=\"a/b\": a lab's name is of lower-case letters, digits and hyphens, 31 at most",
	} {
		t.Setenv("TULLE_LAB", given)
		l, err := locate()
		got := l.state
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%q: want %q, got %q", given, want, got)
		}
	}
}

func TestCertificatesAreTrustedForTheirNamesAlone(t *testing.T) {
	t.Parallel()
	now := time.Unix(2e9, 0)
	authority, err := newAuthority(now)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(authority.encoded) {
		t.Fatal("the authority's own certificate does not parse")
	}
	made, err := authority.issue("system:node:lab", "system:nodes", "10.1.2.3", "kubernetes.default.svc")
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(made.certificate)
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	for server, want := range map[string]bool{"10.1.2.3": true, "kubernetes.default.svc": true, "10.1.2.4": false, "default.svc": false} {
		_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: server, CurrentTime: now})
		if got := err == nil; got != want {
			t.Errorf("%s: want trusted=%t, got %v", server, want, err)
		}
	}
	if got := certificate.Subject.String(); got != "CN=system:node:lab,O=system:nodes" {
		t.Errorf("Kubernetes would read this user: %s", got)
	}
}

func TestTheNodeGetsACertificateForEachFileThatItsServicesName(t *testing.T) {
	t.Parallel()
	etc := t.TempDir()
	authority, err := newAuthority(time.Unix(2e9, 0))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := writePKI(etc, authority, []string{"127.0.0.1"}); err != nil {
		t.Fatal(err)
	}
	l := lab{}
	for _, s := range []service{l.apiServer(), l.controllerManager(), l.scheduler(), l.kubelet()} {
		for _, arg := range s.args {
			_, file, found := strings.Cut(arg, "="+configs)
			if !found || file == "kubelet.yaml" {
				continue
			}
			content, err := os.ReadFile(filepath.Join(etc, file))
			if err != nil {
				t.Errorf("%s %s: %v", s.name, arg, err)
			}
			if strings.HasSuffix(file, ".kubeconfig") && !json.Valid(content) {
				t.Errorf("%s is no kubeconfig:\n%s", file, content)
			}
		}
	}
}

func TestTheNodesOwnFilesAreComplete(t *testing.T) {
	t.Parallel()
	for _, file := range []string{
		"etc/containerd/config.toml", "etc/containerd/certs.d/_default/hosts.toml", "etc/cni/net.d/00-lab.conflist",
		"etc/kubernetes/kubelet.yaml", "etc/kubernetes/proxy.yaml", "etc/resolv.conf",
	} {
		if _, err := fs.Stat(rootfs, "rootfs/"+file); err != nil {
			t.Error(err)
		}
	}
}

func TestAnArchiveIsPushedUnderItsNamesWithoutTheirHost(t *testing.T) {
	t.Parallel()
	tree := &pack.Tree{}
	tree.Write("/file", "text")
	layer, err := tree.Layer()
	if err != nil {
		t.Fatal(err)
	}
	image, err := pack.Image(v1.Config{}, layer)
	if err != nil {
		t.Fatal(err)
	}
	for given, want := range map[string]string{
		"ghcr.io/tulle-mesh/tulle:v1.20.0": "tulle-mesh/tulle:v1.20.0",
		"localhost:5000/app:v1":            "app:v1",
		"hello":                            "hello:latest",
	} {
		tag, err := name.NewTag(given)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := tarball.WriteToFile(file, tag, image); err != nil {
			t.Fatal(err)
		}
		got, err := namesIn(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{want}, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", given, diff)
		}
	}
}

func TestNoLockMeansNoLab(t *testing.T) {
	t.Parallel()
	l := lab{name: "none", state: t.TempDir()}
	if pid, err := l.first(); pid != 0 || err != nil {
		t.Errorf("no lock file: want nothing, got process %d, %v", pid, err)
	}
	if err := os.WriteFile(l.in("lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := l.running(); err == nil || !strings.Contains(err.Error(), "make lab") {
		t.Errorf("a lock that nobody holds: want an error that says what to do, got %v", err)
	}
}
