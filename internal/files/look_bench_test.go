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
	dir := b.TempDir()
	save := func(kind string, service, value int) string {
		text := fmt.Sprintf(`apiVersion: appmesh.k8s.aws/v1beta2
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
		if kind == "slice" {
			text = fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s%[1]d-1, namespace: n, labels: {kubernetes.io/service-name: s%[1]d}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.0.0.%[2]d]}]
`, service, value)
		}
		name := filepath.Join(dir, fmt.Sprintf("%s%d.yaml", kind, service))
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
		return name
	}
	for i := range services {
		save("router", i, 1)
		save("slice", i, 1)
	}
	preface := "kind: Mesh\napiVersion: appmesh.k8s.aws/v1beta2\nmetadata: {name: m}\nspec: {namespaceSelector: {}}\n---\n" +
		"kind: Namespace\napiVersion: v1\nmetadata: {name: n}\n---\n" +
		"kind: VirtualNode\napiVersion: appmesh.k8s.aws/v1beta2\nmetadata: {name: s1, namespace: n}\nspec: {}\n"
	if err := os.WriteFile(filepath.Join(dir, "0.yaml"), []byte(preface), 0o600); err != nil {
		b.Fatal(err)
	}
	s := New(Options{Paths: []string{dir}})
	if _, err := s.Load(); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		name := save(kind, 1, 2+i%90)
		s.files[name].stale = true
		if changes := s.look([]string{name}, time.Time{}); len(changes.Set) != 1 {
			b.Fatalf("%+v, %v", changes, s.doubts)
		}
	}
}
