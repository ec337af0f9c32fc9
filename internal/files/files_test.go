// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files_test

import (
	"strings"
	"testing"
	"time"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/files"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

func keys(changes mesh.Changes) string {
	var list []string
	for _, o := range changes.Set {
		list = append(list, o.Key().String())
	}
	return strings.Join(list, ", ")
}

func TestNamespacedObjectsWithoutNamespaceGetTheDefault(t *testing.T) {
	t.Parallel()
	service := "apiVersion: v1\nkind: Service\nmetadata: {name: s}\n"
	for namespace, want := range map[string]string{"": "Service default/s", "shop": "Service shop/s"} {
		_, changes := load(t, files.Options{Paths: []string{"-"}, Stdin: strings.NewReader(service), Namespace: namespace})
		if got := keys(changes); got != want {
			t.Errorf("namespace %q: %s, want %s", namespace, got, want)
		}
		if file := changes.Set[0].From().File; file != "(stdin)" {
			t.Errorf("the file is %q", file)
		}
	}
}

func TestAPathThatDoesNotExistIsAnError(t *testing.T) {
	t.Parallel()
	_, err := files.New(files.Options{Paths: []string{"testdata/nothing-here"}}).Load()
	if err == nil || !strings.Contains(err.Error(), "nothing-here") {
		t.Errorf("error is %v", err)
	}
}

func TestPathsAreReadInTheirOrderAndDirectoriesInNameOrder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/d/10.yaml", meshNamed("m", "DROP_ALL"))
	write(t, dir+"/d/9.yaml", meshNamed("m", "ALLOW_ALL"))
	write(t, dir+"/a.yaml", meshNamed("m", "DROP_ALL"))
	for _, test := range []struct {
		paths []string
		want  mesh.EgressFilterType
	}{
		{[]string{dir + "/d"}, "ALLOW_ALL"},
		{[]string{dir + "/d", dir + "/a.yaml"}, "DROP_ALL"},
		{[]string{dir + "/a.yaml", dir + "/d", dir + "/a.yaml"}, "ALLOW_ALL"},
	} {
		_, changes := load(t, files.Options{Paths: test.paths})
		m, ok := changes.Set[0].(*mesh.Mesh)
		if !ok || m.Spec.EgressFilter.Type != test.want {
			t.Errorf("%v: %+v, want %s", test.paths, changes.Set[0], test.want)
		}
	}
}

func TestTheTimeOfAChangeIsTheClocks(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 9, 30, 12, 0, 0, 0, time.UTC)
	_, changes := load(t, files.Options{
		Paths: []string{"-"}, Stdin: strings.NewReader(meshNamed("m", "DROP_ALL")), Clock: clock.NewFake(now),
	})
	if !changes.Since.Equal(now) {
		t.Errorf("since is %v, want %v", changes.Since, now)
	}
}

func TestLocateFindsTheLineOfAField(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir+"/f.yaml", `---
apiVersion: v1
kind: List
items:
  - kind: A
    spec:
      listeners:
        - portMapping:
            port: 1
  - kind: B
---
kind: C
spec: {a: 1,
  b: [x,
    y]}
`)
	var locator files.Locator
	for _, test := range []struct {
		line  int
		field string
		want  int
	}{
		{5, "spec.listeners[0].portMapping.port", 9},
		{5, "spec.listeners[0].portMapping.protocol", 8},
		{5, "spec.listeners[7]", 7},
		{5, "", 5},
		{10, "kind", 10},
		{12, "spec.b[1]", 15},
		{12, "spec.B", 14},
		{99, "spec", 99},
	} {
		if got := locator.Line(dir+"/f.yaml", test.line, test.field); got != test.want {
			t.Errorf("line %d, field %q: line %d, want %d", test.line, test.field, got, test.want)
		}
	}
	if got := locator.Line(dir+"/none", 3, "x"); got != 3 {
		t.Errorf("a file that is gone: line %d, want 3", got)
	}
}
