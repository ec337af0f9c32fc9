// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tulle-mesh/tulle/internal/files"
)

// resources writes 10,000 resources into 100 files of a directory: a mesh, and groups of a node, a service, a router, a
// Service and a slice that refer to each other.
func resources(b *testing.B) string {
	b.Helper()
	dir := b.TempDir()
	var text strings.Builder
	text.WriteString("apiVersion: v1\nkind: Namespace\nmetadata: {name: n, labels: {mesh: m}}\n---\n")
	text.WriteString("apiVersion: appmesh.k8s.aws/v1beta2\nkind: Mesh\nmetadata: {name: m}\nspec: {namespaceSelector: {matchLabels: {mesh: m}}}\n")
	for i := range 2000 {
		next := (i + 1) % 2000
		fmt.Fprintf(&text, `---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: s%[1]d, namespace: n}
spec:
  podSelector:
    matchLabels: {app: s%[1]d}
  listeners:
    - portMapping: {port: 8080, protocol: http}
      healthCheck: {protocol: http, path: /ping, healthyThreshold: 2, unhealthyThreshold: 2, timeoutMillis: 2000, intervalMillis: 5000}
  serviceDiscovery:
    dns: {hostname: s%[1]d.n.svc.cluster.local}
  backends:
    - virtualService:
        virtualServiceRef: {name: s%[2]d}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: s%[1]d, namespace: n}
spec:
  awsName: s%[1]d.n.svc.cluster.local
  provider:
    virtualRouter:
      virtualRouterRef: {name: s%[1]d}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualRouter
metadata: {name: s%[1]d, namespace: n}
spec:
  listeners:
    - portMapping: {port: 8080, protocol: http}
  routes:
    - name: all
      httpRoute:
        match: {prefix: /}
        action:
          weightedTargets:
            - virtualNodeRef: {name: s%[1]d}
              weight: 90
            - virtualNodeRef: {name: s%[2]d}
              weight: 10
---
apiVersion: v1
kind: Service
metadata: {name: s%[1]d, namespace: n}
spec: {clusterIP: 10.96.%[3]d.%[4]d, ports: [{port: 8080}], selector: {app: s%[1]d}}
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: s%[1]d-1, namespace: n, labels: {kubernetes.io/service-name: s%[1]d}}
addressType: IPv4
ports: [{port: 8080}]
endpoints: [{addresses: [10.0.%[3]d.%[4]d]}]
`, i, next, i/250, i%250)
		if i%20 == 19 {
			if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04d.yaml", i)), []byte(text.String()), 0o600); err != nil {
				b.Fatal(err)
			}
			text.Reset()
		}
	}
	return dir
}

func BenchmarkLoad10000Resources(b *testing.B) {
	dir := resources(b)
	for b.Loop() {
		changes, err := files.New(files.Options{Paths: []string{dir}}).Load()
		if err != nil || len(changes.Set) != 12001 || len(changes.Findings) != 0 {
			b.Fatalf("%d objects, %d with findings: %v", len(changes.Set), len(changes.Findings), err)
		}
	}
}
