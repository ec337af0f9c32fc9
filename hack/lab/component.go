// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/sys/unix"
)

// A component is a program of other people that the lab builds from its Go module, once a version.
type component struct {
	name, version string
	// module is the Go module that version belongs to.
	module string
	// pkg is the main package to build. Where it is empty, source is.
	pkg    string
	source []byte
	// aliases are further names that the program plays a part under.
	aliases []string
	// stamped are variables and what the linker sets them to.
	stamped map[string]string
	// staged says that the module brings other modules along in its folder staging, which are published on their own as v0 of the same minor version.
	staged bool
}

//go:embed source/kubernetes/main.go
var kubernetesMain []byte

//go:embed source/coredns/main.go
var corednsMain []byte

// Versions that are said more than once.
const (
	kubernetesMinor, kubernetesPatch = "37", "2"

	helmVersion = "v3.22.0"
)

// components are everything that the lab builds; to move to another version, change it here.
func components() []component {
	kubernetes := "v1." + kubernetesMinor + "." + kubernetesPatch
	stamped := map[string]string{}
	for _, place := range []string{"k8s.io/component-base/version", "k8s.io/client-go/pkg/version"} {
		stamped[place+".gitVersion"], stamped[place+".gitMajor"], stamped[place+".gitMinor"] = kubernetes, "1", kubernetesMinor
	}
	return []component{
		{name: "etcd", version: "v3.7.3", module: "go.etcd.io/etcd/server/v3", pkg: "go.etcd.io/etcd/server/v3"},
		{name: "coredns", version: "v1.15.0", module: "github.com/coredns/coredns", source: corednsMain},
		{
			name: "helm", version: helmVersion, module: "helm.sh/helm/v3", pkg: "helm.sh/helm/v3/cmd/helm",
			stamped: map[string]string{"helm.sh/helm/v3/internal/version.version": helmVersion},
		},
		{
			name: "kubernetes", version: kubernetes, module: "k8s.io/kubernetes", source: kubernetesMain, staged: true,
			aliases: []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl"},
			stamped: stamped,
		},
	}
}

// toolFolder holds a component's program under all its names.
func (l lab) toolFolder(c component) string {
	return filepath.Join(l.cache, "tools", c.name, c.version)
}

// tool is the path of a program that a component plays.
func (l lab) tool(name string) string {
	for _, c := range components() {
		if c.name == name || slices.Contains(c.aliases, name) {
			return filepath.Join(l.toolFolder(c), name)
		}
	}
	return name
}

// alone waits until no other process brings a lab up from this cache, and keeps others waiting until the returned file is closed.
func (l lab) alone() (*os.File, error) {
	if err := os.MkdirAll(l.cache, 0o750); err != nil {
		return nil, err
	}
	lock, err := os.OpenFile(filepath.Join(l.cache, "up.lock"), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return nil, errors.Join(fmt.Errorf("waiting for another lab: %w", err), lock.Close())
	}
	return lock, nil
}

// buildComponents builds what is not there yet.
func (l lab) buildComponents(ctx context.Context, p progress) error {
	for _, c := range components() {
		if _, err := os.Stat(l.toolFolder(c)); err == nil {
			continue
		}
		p.say("building %s %s, once", c.name, c.version)
		if err := l.build(ctx, c); err != nil {
			return fmt.Errorf("building %s %s: %w", c.name, c.version, err)
		}
		p.say("built %s", c.name)
	}
	return nil
}

// build makes a module that wants nothing but the component, builds it there, and puts it in place whole.
func (l lab) build(ctx context.Context, c component) error {
	module := filepath.Join(l.cache, "build", c.name+"-"+c.version)
	if err := os.RemoveAll(module); err != nil {
		return err
	}
	out := filepath.Join(module, "out")
	if err := os.MkdirAll(out, 0o750); err != nil {
		return err
	}
	mod, err := c.goMod(ctx, module)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(module, "go.mod"), mod, 0o600); err != nil {
		return err
	}
	target := c.pkg
	if target == "" {
		target = "main.go"
		if err := os.WriteFile(filepath.Join(module, target), c.source, 0o600); err != nil {
			return err
		}
	}
	flags := []string{"-s", "-w"}
	for _, variable := range slices.Sorted(maps.Keys(c.stamped)) {
		flags = append(flags, "-X", variable+"="+c.stamped[variable])
	}
	if _, err := goCommand(ctx, module, "build", "-trimpath", "-buildvcs=false", "-ldflags", strings.Join(flags, " "), "-o", filepath.Join(out, c.name), target); err != nil {
		return err
	}
	for _, alias := range c.aliases {
		if err := os.Symlink(c.name, filepath.Join(out, alias)); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(filepath.Dir(l.toolFolder(c)), 0o750); err != nil {
		return err
	}
	return os.Rename(out, l.toolFolder(c))
}

// goMod is a module file that requires the component, and each module of its staging folder in the version it is published as.
func (c component) goMod(ctx context.Context, dir string) ([]byte, error) {
	file := &modfile.File{}
	err := errors.Join(file.AddModuleStmt("lab.invalid/"+c.name), file.AddGoStmt("1.26.0"), file.AddRequire(c.module, c.version))
	if err != nil {
		return nil, err
	}
	if !c.staged {
		return file.Format()
	}
	answer, err := goCommand(ctx, dir, "mod", "download", "-json", c.module+"@"+c.version)
	if err != nil {
		return nil, err
	}
	var download struct{ GoMod string }
	if err := json.Unmarshal(answer, &download); err != nil {
		return nil, fmt.Errorf("reading what go mod download says: %w", err)
	}
	text, err := os.ReadFile(download.GoMod)
	if err != nil {
		return nil, err
	}
	theirs, err := modfile.Parse(download.GoMod, text, nil)
	if err != nil {
		return nil, err
	}
	published := "v0." + strings.TrimPrefix(c.version, "v1.")
	for _, replaced := range theirs.Replace {
		if strings.HasPrefix(replaced.New.Path, "./staging/") {
			if err := file.AddReplace(replaced.Old.Path, "", replaced.Old.Path, published); err != nil {
				return nil, err
			}
		}
	}
	return file.Format()
}

// goCommand runs the go command at low priority, for a module that is written as it goes.
func goCommand(ctx context.Context, dir string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "nice", append([]string{"-n", "15", "go"}, args...)...) //nolint:gosec // the arguments are written above
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=-mod=mod", "GOWORK=off")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("go %s in %s: %w\n%s", args[0], dir, err, errs.Bytes())
	}
	return out.Bytes(), nil
}
