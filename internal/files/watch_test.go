// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/files"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

func meshNamed(name, filter string) string {
	return "apiVersion: appmesh.k8s.aws/v1beta2\nkind: Mesh\nmetadata: {name: " + name + "}\nspec: {egressFilter: {type: " + filter + "}}\n"
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// follower runs a source and keeps what it was told.
type follower struct {
	t       *testing.T
	root    string
	changes chan mesh.Changes
	filters map[string]mesh.EgressFilterType
	errors  map[mesh.Source]int
}

func follow(t *testing.T, root string, options files.Options) *follower {
	t.Helper()
	f := &follower{
		t: t, root: root, changes: make(chan mesh.Changes, 100),
		filters: map[string]mesh.EgressFilterType{}, errors: map[mesh.Source]int{},
	}
	source := files.New(options)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx, func(c mesh.Changes) { f.changes <- c }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	select {
	case <-source.Synced():
	case <-time.After(10 * time.Second):
		t.Fatal("the source never synced")
	}
	f.take(<-f.changes)
	return f
}

func (f *follower) take(c mesh.Changes) {
	for _, o := range c.Set {
		if m, ok := o.(*mesh.Mesh); ok {
			f.filters[m.Name] = m.Spec.EgressFilter.Type
		}
	}
	for _, key := range c.Removed {
		delete(f.filters, key.Name)
	}
	for source, list := range c.Findings {
		delete(f.errors, source)
		if len(list) > 0 {
			f.errors[source] = len(list)
		}
	}
}

// until takes changes until the meshes are as wanted ("m=DROP_ALL n=ALLOW_ALL") and so many sources have findings.
func (f *follower) until(want string, faulty int) {
	f.t.Helper()
	deadline := time.After(10 * time.Second)
	for {
		if f.is(want) && len(f.errors) == faulty {
			return
		}
		select {
		case c := <-f.changes:
			f.take(c)
		case <-deadline:
			f.t.Fatalf("want %q with %d at fault, have %v with %v", want, faulty, f.filters, f.errors)
		}
	}
}

// untilLater moves the clock on, step by step, until the meshes are as wanted.
func (f *follower) untilLater(now *clock.Fake, step time.Duration, want string) {
	f.t.Helper()
	deadline := time.After(10 * time.Second)
	for !f.is(want) {
		now.Advance(step)
		select {
		case c := <-f.changes:
			f.take(c)
		case <-time.After(10 * time.Millisecond):
		case <-deadline:
			f.t.Fatalf("want %q, have %v with %v", want, f.filters, f.errors)
		}
	}
}

func (f *follower) is(want string) bool {
	fields := strings.Fields(want)
	for _, field := range fields {
		name, filter, _ := strings.Cut(field, "=")
		if f.filters[name] != mesh.EgressFilterType(filter) {
			return false
		}
	}
	return len(fields) == len(f.filters)
}

func TestChangesOnDiskAreFollowed(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]func(t *testing.T, f *follower, dir string){
		"a save": func(t *testing.T, f *follower, dir string) {
			t.Helper()
			write(t, dir+"/a.yaml", meshNamed("a", "ALLOW_ALL"))
			f.until("a=ALLOW_ALL", 0)
		},
		"a new file and its removal": func(t *testing.T, f *follower, dir string) {
			t.Helper()
			write(t, dir+"/b.yml", meshNamed("b", "DROP_ALL"))
			f.until("a=DROP_ALL b=DROP_ALL", 0)
			if err := os.Remove(dir + "/a.yaml"); err != nil {
				t.Fatal(err)
			}
			f.until("b=DROP_ALL", 0)
		},
		"an atomic rename": func(t *testing.T, f *follower, dir string) {
			t.Helper()
			write(t, dir+"/.a.yaml.tmp", meshNamed("a", "ALLOW_ALL"))
			if err := os.Rename(dir+"/.a.yaml.tmp", dir+"/a.yaml"); err != nil {
				t.Fatal(err)
			}
			f.until("a=ALLOW_ALL", 0)
		},
		"a broken file keeps what it held": func(t *testing.T, f *follower, dir string) {
			t.Helper()
			write(t, dir+"/a.yaml", meshNamed("a", "ALLOW_ALL")+"---\n{")
			f.until("a=DROP_ALL", 1)
			write(t, dir+"/b.yaml", meshNamed("b", "DROP_ALL"))
			f.until("a=DROP_ALL b=DROP_ALL", 1)
			write(t, dir+"/a.yaml", meshNamed("a", "ALLOW_ALL"))
			f.until("a=ALLOW_ALL b=DROP_ALL", 0)
		},
		"an object at fault keeps what it was while others go on": func(t *testing.T, f *follower, dir string) {
			t.Helper()
			write(t, dir+"/a.yaml", meshNamed("a", "[]")+"---\n"+meshNamed("b", "DROP_ALL"))
			f.until("a=DROP_ALL b=DROP_ALL", 1)
		},
		"the same object in two files": func(t *testing.T, f *follower, dir string) {
			t.Helper()
			write(t, dir+"/b.yaml", meshNamed("a", "ALLOW_ALL"))
			f.until("a=ALLOW_ALL", 1)
			if err := os.Remove(dir + "/b.yaml"); err != nil {
				t.Fatal(err)
			}
			f.until("a=DROP_ALL", 0)
		},
		"a directory inside is another matter": func(t *testing.T, f *follower, dir string) {
			t.Helper()
			write(t, dir+"/inner/c.yaml", meshNamed("c", "DROP_ALL"))
			write(t, dir+"/notes.txt", meshNamed("d", "DROP_ALL"))
			write(t, dir+"/b.yaml", meshNamed("b", "DROP_ALL"))
			f.until("a=DROP_ALL b=DROP_ALL", 0)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			write(t, dir+"/a.yaml", meshNamed("a", "DROP_ALL"))
			f := follow(t, dir, files.Options{Paths: []string{dir}})
			f.until("a=DROP_ALL", 0)
			steps(t, f, dir)
		})
	}
}

func TestAFileByItsNameIsFollowedThroughReplacement(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/a", meshNamed("a", "DROP_ALL"))
	write(t, dir+"/b.yaml", meshNamed("b", "DROP_ALL"))
	f := follow(t, dir, files.Options{Paths: []string{dir + "/a"}})
	f.until("a=DROP_ALL", 0)
	write(t, dir+"/new", meshNamed("a", "ALLOW_ALL"))
	if err := os.Rename(dir+"/new", dir+"/a"); err != nil {
		t.Fatal(err)
	}
	f.until("a=ALLOW_ALL", 0)
}

func TestAMountedConfigMapIsFollowed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/..1/m.yaml", meshNamed("a", "DROP_ALL"))
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, name); err != nil {
			t.Fatal(err)
		}
	}
	link("..1", dir+"/..data")
	link("..data/m.yaml", dir+"/m.yaml")
	f := follow(t, dir, files.Options{Paths: []string{dir}})
	f.until("a=DROP_ALL", 0)
	write(t, dir+"/..2/m.yaml", meshNamed("a", "ALLOW_ALL"))
	link("..2", dir+"/..data_tmp")
	if err := os.Rename(dir+"/..data_tmp", dir+"/..data"); err != nil {
		t.Fatal(err)
	}
	f.until("a=ALLOW_ALL", 0)
}

func TestADirectoryThatIsALinkIsFollowedWhenItMoves(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/one/m.yaml", meshNamed("a", "DROP_ALL"))
	write(t, dir+"/two/m.yaml", meshNamed("a", "ALLOW_ALL"))
	for _, step := range []struct{ target, name string }{{"one", "/now"}, {"two", "/next"}} {
		if err := os.Symlink(step.target, dir+step.name); err != nil {
			t.Fatal(err)
		}
	}
	f := follow(t, dir, files.Options{Paths: []string{dir + "/now"}})
	f.until("a=DROP_ALL", 0)
	if err := os.Rename(dir+"/next", dir+"/now"); err != nil {
		t.Fatal(err)
	}
	f.until("a=ALLOW_ALL", 0)
	write(t, dir+"/two/b.yaml", meshNamed("b", "DROP_ALL"))
	f.until("a=ALLOW_ALL b=DROP_ALL", 0)
}

func TestAPathThatGoesAwayKeepsWhatItHeld(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{"a directory": "/in/put", "a file": "/in/put/a.yaml"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			write(t, root+"/in/put/a.yaml", meshNamed("a", "DROP_ALL"))
			write(t, root+"/else/b.yaml", meshNamed("b", "DROP_ALL"))
			f := follow(t, root, files.Options{Paths: []string{root + path, root + "/else"}})
			f.until("a=DROP_ALL b=DROP_ALL", 0)
			if err := os.Rename(root+path, root+"/in/away"); err != nil {
				t.Fatal(err)
			}
			f.until("a=DROP_ALL b=DROP_ALL", 1)
			write(t, root+"/else/b.yaml", meshNamed("b", "ALLOW_ALL"))
			f.until("a=DROP_ALL b=ALLOW_ALL", 1)
			if err := os.Rename(root+"/in/away", root+path); err != nil {
				t.Fatal(err)
			}
			f.until("a=DROP_ALL b=ALLOW_ALL", 0)
		})
	}
}

func TestLinksOnTheWayToAFileAreFollowed(t *testing.T) {
	t.Parallel()
	relink := func(t *testing.T, target, link string) {
		t.Helper()
		if err := os.Symlink(target, link+".new"); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(link+".new", link); err != nil {
			t.Fatal(err)
		}
	}
	t.Run("what a link leads to is written again", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		write(t, root+"/else/where/a.yaml", meshNamed("a", "DROP_ALL"))
		write(t, root+"/in/put/b.yaml", meshNamed("b", "DROP_ALL"))
		relink(t, "../../else/where/a.yaml", root+"/in/put/a.yaml")
		f := follow(t, root, files.Options{Paths: []string{root + "/in/put"}})
		f.until("a=DROP_ALL b=DROP_ALL", 0)
		write(t, root+"/else/where/a.yaml", meshNamed("a", "ALLOW_ALL"))
		f.until("a=ALLOW_ALL b=DROP_ALL", 0)
	})
	t.Run("a link above the file is swapped", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		write(t, root+"/releases/1/a.yaml", meshNamed("a", "DROP_ALL"))
		write(t, root+"/releases/2/a.yaml", meshNamed("a", "ALLOW_ALL"))
		relink(t, "releases/1", root+"/current")
		f := follow(t, root, files.Options{Paths: []string{root + "/current/a.yaml"}})
		f.until("a=DROP_ALL", 0)
		relink(t, "releases/2", root+"/current")
		f.until("a=ALLOW_ALL", 0)
	})
	t.Run("links in a circle harm nothing", func(t *testing.T) {
		t.Parallel()
		root := t.TempDir()
		write(t, root+"/in/b.yaml", meshNamed("b", "DROP_ALL"))
		relink(t, "a.yaml", root+"/in/a.yaml")
		f := follow(t, root, files.Options{Paths: []string{root + "/in"}})
		f.until("b=DROP_ALL", 1)
		write(t, root+"/in/b.yaml", meshNamed("b", "ALLOW_ALL"))
		f.until("b=ALLOW_ALL", 1)
	})
}

func TestDirectoriesInsideAreReadWhenAskedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/x/a.yaml", meshNamed("a", "DROP_ALL"))
	f := follow(t, dir, files.Options{Paths: []string{dir}, Recursive: true})
	f.until("a=DROP_ALL", 0)
	write(t, dir+"/y/z/b.yaml", meshNamed("b", "DROP_ALL"))
	f.until("a=DROP_ALL b=DROP_ALL", 0)
}

func TestAChangeThatNoEventTellsOfIsFoundInTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/in/a.yaml", meshNamed("a", "DROP_ALL"))
	write(t, dir+"/in/b.yaml", meshNamed("b", "DROP_ALL"))
	if err := os.Mkdir(dir+"/out", 0o750); err != nil {
		t.Fatal(err)
	}
	// Whoever watches one directory is not told of what is written under a file's name in another one.
	if err := os.Link(dir+"/in/a.yaml", dir+"/out/a.yaml"); err != nil {
		t.Fatal(err)
	}
	now := clock.NewFake(time.Date(2026, 9, 30, 12, 0, 0, 0, time.UTC))
	f := follow(t, dir, files.Options{Paths: []string{dir + "/in"}, Clock: now})
	f.until("a=DROP_ALL b=DROP_ALL", 0)
	write(t, dir+"/out/a.yaml", meshNamed("a", "ALLOW_ALL"))
	write(t, dir+"/in/.b.tmp", meshNamed("b", "ALLOW_ALL"))
	if err := os.Rename(dir+"/in/.b.tmp", dir+"/in/b.yaml"); err != nil {
		t.Fatal(err)
	}
	f.until("a=DROP_ALL b=ALLOW_ALL", 0)
	f.untilLater(now, time.Minute, "a=ALLOW_ALL b=ALLOW_ALL")
}

func TestATextThatBreaksOffInALineIsNotBelievedAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/a.yaml", meshNamed("a", "DROP_ALL"))
	write(t, dir+"/b.yaml", meshNamed("b", "DROP_ALL"))
	now := clock.NewFake(time.Date(2026, 9, 30, 12, 0, 0, 0, time.UTC))
	f := follow(t, dir, files.Options{Paths: []string{dir}, Clock: now})
	f.until("a=DROP_ALL b=DROP_ALL", 0)
	replace := func(name, text string) {
		t.Helper()
		write(t, dir+"/.tmp", text)
		if err := os.Rename(dir+"/.tmp", dir+name); err != nil {
			t.Fatal(err)
		}
	}
	replace("/a.yaml", "apiVersion: appmesh.k8s.aws/v1beta2\nkind: Mesh\nmetadata: {name: a}\nspec: {}")
	replace("/b.yaml", meshNamed("b", "ALLOW_ALL"))
	f.until("a=DROP_ALL b=ALLOW_ALL", 0)
	now.Advance(20 * time.Millisecond)
	replace("/a.yaml", meshNamed("a", "ALLOW_ALL"))
	f.until("a=ALLOW_ALL b=ALLOW_ALL", 0)
	replace("/a.yaml", strings.TrimSpace(meshNamed("a", "DROP_ALL")))
	f.untilLater(now, 100*time.Millisecond, "a=DROP_ALL b=ALLOW_ALL")
}

func TestOneOfTwoWritesInTheSameInstantIsNotLost(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/a.yaml", meshNamed("a", "DROP_ALL "))
	f := follow(t, dir, files.Options{Paths: []string{dir}})
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, step := range []struct{ filter, want string }{{"ALLOW_ALL", "a=ALLOW_ALL"}, {"DROP_ALL ", "a=DROP_ALL"}, {"ALLOW_ALL", "a=ALLOW_ALL"}} {
		file, err := os.OpenFile(dir+"/a.yaml", os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(meshNamed("a", step.filter)); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
		// The file looks as it did: same size, same time.
		if err := os.Chtimes(dir+"/a.yaml", at, at); err != nil {
			t.Fatal(err)
		}
		f.until(step.want, 0)
	}
}
