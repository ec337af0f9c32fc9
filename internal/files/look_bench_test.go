// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// BenchmarkLook reads one file of a directory again, whose text changed; writing it is part of the time.
func BenchmarkLook(b *testing.B) {
	for _, services := range []int{10, 1100, 11000} {
		for _, kind := range []string{"router", "slice"} {
			b.Run(fmt.Sprintf("%s of %d files", kind, 2*services), func(b *testing.B) { benchmarkLook(b, services, kind) })
		}
	}
}

func benchmarkLook(b *testing.B, services int, kind string) {
	b.Helper()
	dir := newDirectory(b, services)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		dir.change(kind, 2+i%90)
	}
}

// TestAChangeCostsTheSameInADirectoryOfAnySize is not parallel, for it counts allocations.
func TestAChangeCostsTheSameInADirectoryOfAnySize(t *testing.T) {
	for _, kind := range []string{"router", "slice"} {
		var allocations [2]float64
		for i, services := range []int{10, 400} {
			dir := newDirectory(t, services)
			value := 0
			allocations[i] = testing.AllocsPerRun(50, func() {
				value++
				dir.change(kind, 2+value%90)
			})
		}
		if allocations[1] > allocations[0]+20 {
			t.Errorf("a changed %s takes %.0f allocations among 20 files and %.0f among 800", kind, allocations[0], allocations[1])
		}
	}
}

// directory is one with a file for the router and one for the endpoints of each service, and a source that has read it.
type directory struct {
	tb     testing.TB
	path   string
	source *Source
}

func newDirectory(tb testing.TB, services int) *directory {
	tb.Helper()
	d := &directory{tb: tb, path: tb.TempDir()}
	d.source = New(Options{Paths: []string{d.path}})
	d.save("0.yaml", `kind: Mesh
apiVersion: appmesh.k8s.aws/v1beta2
metadata: {name: m}
spec: {namespaceSelector: {}}
---
kind: Namespace
apiVersion: v1
metadata: {name: n}
---
kind: VirtualNode
apiVersion: appmesh.k8s.aws/v1beta2
metadata: {name: s1, namespace: n}
spec: {}
`)
	for i := range services {
		d.save(manifest("router", i, 1))
		d.save(manifest("slice", i, 1))
	}
	if _, err := d.source.Load(); err != nil {
		tb.Fatal(err)
	}
	return d
}

func (d *directory) save(name, text string) {
	d.tb.Helper()
	if err := os.WriteFile(filepath.Join(d.path, name), []byte(text), 0o600); err != nil {
		d.tb.Fatal(err)
	}
}

// change writes one file and has it read.
func (d *directory) change(kind string, value int) {
	d.tb.Helper()
	file, text := manifest(kind, 1, value)
	d.save(file, text)
	name := filepath.Join(d.path, file)
	d.source.files[name].stale = true
	if changes := d.source.look([]string{name}, time.Time{}); len(changes.Set) != 1 {
		d.tb.Fatalf("changed %+v with doubts %v", changes, d.source.doubts)
	}
}

func manifest(kind string, service, value int) (name, text string) {
	name = fmt.Sprintf("%s%d.yaml", kind, service)
	if kind == "slice" {
		return name, fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s%[1]d-1, namespace: n, labels: {kubernetes.io/service-name: s%[1]d}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.0.0.%[2]d]}]
`, service, value)
	}
	return name, fmt.Sprintf(`apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualRouter
metadata: {name: s%[1]d, namespace: n}
spec:
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  routes:
    - name: all
      httpRoute:
        match: {prefix: /}
        action:
          weightedTargets: [{virtualNodeRef: {name: s%[1]d}, weight: %[2]d}]
`, service, value)
}
