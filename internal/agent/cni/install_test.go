// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cni

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/clock"
)

var update = flag.Bool("update", false, "write the golden files again")

// node is an installer for the folders of a node of its own, which has the networks given.
func node(t *testing.T, networks map[string]string) Installer {
	t.Helper()
	dir := t.TempDir()
	i := Installer{
		ConfDir: filepath.Join(dir, "net.d"), BinDir: filepath.Join(dir, "bin"), Program: filepath.Join(dir, "program"),
		Clock: clock.Real{}, Logger: slog.New(slog.DiscardHandler),
	}
	for _, folder := range []string{i.ConfDir, i.BinDir} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, i.Program, "the program")
	for name, content := range networks {
		write(t, filepath.Join(i.ConfDir, name), content)
	}
	return i
}

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(content)
	}
	return all
}

// small is a network as short as they come.
const small = `{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"bridge"}]}`

func TestInstallAddsThePluginToANetworkAndUninstallTakesItOut(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/networks/*.in.json")
	if err != nil || len(files) == 0 {
		t.Fatal("no networks", err)
	}
	if *update {
		prune(t, "testdata/networks", ".in.json", ".out.json")
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".in.json"), func(t *testing.T) {
			t.Parallel()
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			i := node(t, map[string]string{"10-net.conflist": string(before)})
			if _, err := i.Install(); err != nil {
				t.Fatal(err)
			}
			after := contents(t, i.ConfDir)["10-net.conflist"]
			golden := strings.TrimSuffix(file, ".in.json") + ".out.json"
			if *update {
				write(t, golden, after)
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), after); diff != "" {
				t.Error(diff)
			}
			if changed, err := i.Install(); err != nil || changed {
				t.Errorf("a second time: changed %v, %v", changed, err)
			}
			if err := i.Check(); err != nil {
				t.Error(err)
			}
			if err := i.Uninstall(); err != nil {
				t.Fatal(err)
			}
			// The one that had a stale entry of ours comes back without it.
			if diff := cmp.Diff(value(t, strings.ReplaceAll(string(before), `{"type": "tulle-cni"},`, "")), value(t, contents(t, i.ConfDir)["10-net.conflist"])); diff != "" {
				t.Errorf("after uninstalling: %s", diff)
			}
			if left := contents(t, i.BinDir); len(left) > 0 {
				t.Errorf("uninstalling leaves %v", left)
			}
		})
	}
}

// prune removes the answers whose question is gone.
func prune(t *testing.T, dir, question, answer string) {
	t.Helper()
	answers, err := filepath.Glob(filepath.Join(dir, "*"+answer))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range answers {
		if _, err := os.Stat(strings.TrimSuffix(file, answer) + question); err == nil {
			continue
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

func value(t *testing.T, text string) any {
	t.Helper()
	var v any
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestInstallKeepsToTheFirstNetwork(t *testing.T) {
	t.Parallel()
	i := node(t, map[string]string{"20-later.conflist": small, "README": "nothing"})
	if _, err := i.Install(); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(i.ConfDir, "10-first.conflist"), small)
	if err := i.Check(); err == nil || !strings.Contains(err.Error(), "10-first.conflist does not name tulle-cni as its last plugin") {
		t.Errorf("check: %v", err)
	}
	if changed, err := i.Install(); err != nil || !changed {
		t.Fatalf("changed %v, %v", changed, err)
	}
	have := contents(t, i.ConfDir)
	if !strings.Contains(have["10-first.conflist"], Program) || strings.Contains(have["20-later.conflist"], Program) || have["README"] != "nothing" || len(have) != 3 {
		t.Errorf("have %v", have)
	}
	info, err := os.Stat(filepath.Join(i.ConfDir, "10-first.conflist"))
	if err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("mode %v, %v; want that of the file before", info.Mode(), err)
	}
	info, err = os.Stat(filepath.Join(i.BinDir, Program))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("mode %v, %v; want a program", info.Mode(), err)
	}
}

func TestInstallRefusesWhatItCannotChangeSafely(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		file, content string
		want          string
	}{
		"a network that is not a list":   {"10-net.conf", `{"cniVersion":"1.0.0","name":"n","type":"bridge"}`, "is not a list that a plugin could be added to: write it as a .conflist"},
		"a list cut off in the middle":   {"10-net.conflist", small[:30], "10-net.conflist is not changed: it is no JSON object"},
		"a list without plugins":         {"10-net.conflist", `{"cniVersion":"1.0.0","name":"n","plugins":[]}`, "it has no list of plugins"},
		"a list of a time before chains": {"10-net.conflist", strings.Replace(small, "1.0.0", "0.2.0", 1), "its cniVersion is 0.2.0, and chained plugins need 0.3.1 at least"},
		"a list without a version":       {"10-net.conflist", `{"name":"n","plugins":[{"type":"bridge"}]}`, "it names no cniVersion"},
		"no network at all":              {"README", "", "the node has no network yet"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := node(t, map[string]string{c.file: c.content})
			if _, err := i.Install(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("want an error with %q, got %v", c.want, err)
			}
			if have := contents(t, i.ConfDir)[c.file]; have != c.content {
				t.Errorf("it was changed to %q", have)
			}
		})
	}
	t.Run("a network that is a link", func(t *testing.T) {
		t.Parallel()
		i := node(t, nil)
		target := filepath.Join(t.TempDir(), "net.conflist")
		write(t, target, small)
		if err := os.Symlink(target, filepath.Join(i.ConfDir, "10-net.conflist")); err != nil {
			t.Fatal(err)
		}
		if _, err := i.Install(); err == nil || !strings.Contains(err.Error(), "is a link, and is not replaced") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("a folder that is not there", func(t *testing.T) {
		t.Parallel()
		i := node(t, nil)
		i.BinDir += "-missing"
		if _, err := i.Install(); err == nil || !strings.Contains(err.Error(), "bin-missing: there is no such folder: mount the node's") {
			t.Errorf("got %v", err)
		}
	})
}

// run runs an installer until the function that is returned is called.
func run(t *testing.T, i Installer) (end func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	return sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 600 {
		if holds() {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s did not come about", what)
}

func TestRunWaitsForANetworkAndMendsWhatOthersChange(t *testing.T) {
	t.Parallel()
	i := node(t, nil)
	end := run(t, i)
	defer func() { _ = end() }()
	first := filepath.Join(i.ConfDir, "10-net.conflist")
	inPlace := func() bool { return i.Check() == nil }
	eventually(t, "the program", func() bool { _, err := os.Stat(filepath.Join(i.BinDir, Program)); return err == nil })
	write(t, first, small)
	eventually(t, "the plugin in a network that comes later", inPlace)
	write(t, first, small)
	eventually(t, "the plugin in a network that was written again", inPlace)
	write(t, filepath.Join(i.ConfDir, "05-other.conflist"), strings.Replace(small, `"n"`, `"other"`, 1))
	eventually(t, "the plugin in another network that is now the first", inPlace)
	eventually(t, "its end in the one before", func() bool { return !strings.Contains(contents(t, i.ConfDir)["10-net.conflist"], Program) })
	if err := end(); err != nil {
		t.Fatal(err)
	}
	for name, content := range contents(t, i.ConfDir) {
		if strings.Contains(content, Program) {
			t.Errorf("%s still names the plugin: %s", name, content)
		}
	}
	if left := contents(t, i.BinDir); len(left) > 0 {
		t.Errorf("the program stays: %d files", len(left))
	}
}

func TestRunLeavesThePluginToTheInstallerThatFollows(t *testing.T) {
	t.Parallel()
	i := node(t, map[string]string{"10-net.conflist": small})
	i.Wanted = func(ctx context.Context) bool { return ctx.Err() == nil }
	end := run(t, i)
	defer func() { _ = end() }()
	eventually(t, "the plugin", func() bool { return i.Check() == nil })
	if err := end(); err != nil {
		t.Fatal(err)
	}
	if err := i.Check(); err != nil {
		t.Error(err)
	}
}

func TestRunEndsWhereTheNetworkCannotBeChanged(t *testing.T) {
	t.Parallel()
	i := node(t, map[string]string{"10-net.conf": `{"type":"bridge"}`})
	var log bytes.Buffer
	i.Logger = slog.New(slog.NewTextHandler(&log, nil))
	if err := i.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "is not a list") {
		t.Errorf("got %v", err)
	}
}
