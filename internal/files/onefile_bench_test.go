// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/files"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// oneEach writes a mesh and so many services, each with a file for its custom resources, one for its router and one for
// its endpoints, and returns the directory.
func oneEach(b *testing.B, services int) string {
	b.Helper()
	dir := b.TempDir()
	save(b, filepath.Join(dir, "0.yaml"), `apiVersion: v1
kind: Namespace
metadata: {name: n, labels: {mesh: m}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: Mesh
metadata: {name: m}
spec: {namespaceSelector: {matchLabels: {mesh: m}}}
`)
	for i := range services {
		save(b, filepath.Join(dir, fmt.Sprintf("s%d.yaml", i)), fmt.Sprintf(`apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: s%[1]d, namespace: n}
spec:
  podSelector: {matchLabels: {app: s%[1]d}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: s%[1]d.n.svc.cluster.local}}
  backends: [{virtualService: {virtualServiceRef: {name: s%[2]d}}}]
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: s%[1]d, namespace: n}
spec:
  awsName: s%[1]d.n.svc.cluster.local
  provider: {virtualRouter: {virtualRouterRef: {name: s%[1]d}}}
---
apiVersion: v1
kind: Service
metadata: {name: s%[1]d, namespace: n}
spec: {clusterIP: 10.96.%[3]d.%[4]d, ports: [{port: 8080}], selector: {app: s%[1]d}}
`, i, (i+1)%services, i/250, i%250))
		save(b, filepath.Join(dir, fmt.Sprintf("router%d.yaml", i)), router(i, 1))
		save(b, filepath.Join(dir, fmt.Sprintf("slice%d.yaml", i)), slice(i, 1))
	}
	return dir
}

func router(service, weight int) string {
	return fmt.Sprintf(`apiVersion: appmesh.k8s.aws/v1beta2
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
`, service, weight)
}

func slice(service, host int) string {
	return fmt.Sprintf(`apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s%[1]d-1, namespace: n, labels: {kubernetes.io/service-name: s%[1]d}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.0.0.%[2]d]}]
`, service, host)
}

func save(b *testing.B, name, text string) {
	b.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkOneChangedFile is a file that is written in a directory that is watched, until the change has been handed over.
// A time is from before the write; between changes it rests, so that none waits for the one before it.
func BenchmarkOneChangedFile(b *testing.B) {
	for _, services := range []int{3, 366, 3660} {
		for name, text := range map[string]func(service, value int) string{"router": router, "slice": slice} {
			b.Run(fmt.Sprintf("%s of %d files", name, 3*services+1), func(b *testing.B) {
				oneChangedFile(b, services, name, text)
			})
		}
	}
}

func oneChangedFile(b *testing.B, services int, name string, text func(service, value int) string) {
	b.Helper()
	dir := oneEach(b, services)
	source := files.New(files.Options{Paths: []string{dir}})
	changes := make(chan mesh.Changes)
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- source.Run(ctx, func(c mesh.Changes) { changes <- c }) }()
	if first := <-changes; len(first.Set) != 6*services+1 {
		b.Fatalf("%d objects at the start: %v", len(first.Set), first.Findings)
	}
	file := filepath.Join(dir, name+"1.yaml")
	rest := func() { time.Sleep(30 * time.Millisecond) }
	rest()
	var now clock.Real
	var before, after syscall.Rusage
	var took, longest time.Duration
	b.ReportAllocs()
	b.ResetTimer()
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	for i := range b.N {
		start := now.Now()
		save(b, file, text(1, 2+i%100))
		c := <-changes
		last := now.Now().Sub(start)
		took, longest = took+last, max(longest, last)
		if len(c.Set) != 1 || !strings.Contains(c.Set[0].From().File, name) {
			b.Fatalf("changed %v", c.Set)
		}
		rest()
	}
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	cpu := func(r syscall.Rusage) int64 { return r.Utime.Nano() + r.Stime.Nano() }
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(took.Microseconds())/float64(b.N), "µs-latency/op")
	b.ReportMetric(float64(longest.Microseconds()), "µs-longest")
	b.ReportMetric(float64(cpu(after)-cpu(before))/1000/float64(b.N), "µs-cpu/op")
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}
