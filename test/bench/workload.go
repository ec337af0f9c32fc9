// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// size is one scenario: how many proxies, services, backends of each proxy and endpoints of each service.
type size struct {
	Clients, Services, Backends, Endpoints int
}

func (s size) String() string {
	return fmt.Sprintf("%d proxies, %d services, %d backends each", s.Clients, s.Services, s.Backends)
}

// backends returns the services that a client sends requests to. Service 0 is the one that changes, and every client's backend.
func (s size) backends(client int) []int {
	list := []int{0}
	for i := range s.Backends - 1 {
		list = append(list, 1+(client*(s.Backends-1)+i)%(s.Services-1))
	}
	return list
}

// nodeID is what client n calls itself.
func nodeID(n int) string { return fmt.Sprintf("mesh/bench/virtualNode/client-%d", n) }

// manifests writes the scenario as the files of a mesh: a small one for each object that changes, as they would be in a repository.
type manifests struct {
	dir  string
	size size
}

func (m manifests) writeAll() error {
	if err := m.write("mesh.yaml", meshYAML); err != nil {
		return err
	}
	for i := range m.size.Services {
		name := fmt.Sprint("svc-", i)
		if err := m.write(name+".yaml", expand(serviceYAML, name)); err != nil {
			return err
		}
		if err := m.endpoints(i, ""); err != nil {
			return err
		}
		if err := m.weight(i, 1); err != nil {
			return err
		}
	}
	for c := range m.size.Clients {
		var list strings.Builder
		for _, b := range m.size.backends(c) {
			fmt.Fprintf(&list, "\n  - virtualService: {virtualServiceRef: {name: svc-%d}}", b)
		}
		name := fmt.Sprint("client-", c)
		if err := m.write(name+".yaml", expand(clientYAML, name)+list.String()+"\n"); err != nil {
			return err
		}
	}
	return nil
}

// endpoints writes the addresses of a service, with one more if it is not "".
func (m manifests) endpoints(service int, more string) error {
	var b strings.Builder
	b.WriteString(expand(sliceYAML, fmt.Sprint("svc-", service)))
	for e := range m.size.Endpoints {
		fmt.Fprintf(&b, "\n- {addresses: [10.%d.%d.%d], conditions: {ready: true}}", service/250, service%250, e+1)
	}
	if more != "" {
		fmt.Fprintf(&b, "\n- {addresses: [%s], conditions: {ready: true}}", more)
	}
	return m.write(fmt.Sprintf("svc-%d-endpoints.yaml", service), b.String()+"\n")
}

// weight writes the router of a service. The service that changes is in the midst of a canary; the others have one target.
func (m manifests) weight(service, weight int) error {
	name := fmt.Sprint("svc-", service)
	targets := fmt.Sprintf("{virtualNodeRef: {name: %s}, weight: %d}", name, weight)
	if service == 0 {
		targets += ", {virtualNodeRef: {name: svc-1}, weight: 100}"
	}
	return m.write(name+"-router.yaml", strings.ReplaceAll(expand(routerYAML, name), "TARGETS", targets))
}

// write replaces a file in one step, as an editor or a checkout does.
func (m manifests) write(name, text string) error {
	next := filepath.Join(filepath.Dir(m.dir), "next-"+name)
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	if err := os.Rename(next, filepath.Join(m.dir, name)); err != nil {
		return fmt.Errorf("write manifest: %w", err)
	}
	return nil
}

func expand(text, name string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "NAME", name)
}

const meshYAML = `
apiVersion: v1
kind: Namespace
metadata: {name: bench, labels: {mesh: bench}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: Mesh
metadata: {name: bench}
spec:
  namespaceSelector: {matchLabels: {mesh: bench}}
  egressFilter: {type: DROP_ALL}
`

const serviceYAML = `
apiVersion: v1
kind: Service
metadata: {name: NAME, namespace: bench}
spec: {clusterIP: 10.96.0.1, clusterIPs: [10.96.0.1], ports: [{name: http, port: 8080, targetPort: 8080}]}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: NAME, namespace: bench}
spec:
  awsName: NAME
  podSelector: {matchLabels: {app: NAME}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: NAME.bench.svc.cluster.local}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: NAME, namespace: bench}
spec:
  awsName: NAME.bench.svc.cluster.local
  provider: {virtualRouter: {virtualRouterRef: {name: NAME}}}
`

const routerYAML = `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualRouter
metadata: {name: NAME, namespace: bench}
spec:
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  routes:
  - name: all
    httpRoute: {match: {prefix: /}, action: {weightedTargets: [TARGETS]}}
`

const sliceYAML = `
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: NAME-1, namespace: bench, labels: {kubernetes.io/service-name: NAME}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:`

const clientYAML = `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: NAME, namespace: bench}
spec:
  awsName: NAME
  podSelector: {matchLabels: {app: NAME}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: NAME.bench.svc.cluster.local}}
  backends:`
