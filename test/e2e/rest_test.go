// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// replace is strings.ReplaceAll, for manifests.
func replace(manifest, what, with string) string { return strings.ReplaceAll(manifest, what, with) }

// absentRest takes away what an earlier test left of the namespaces "prod" and "default", so that nothing but the cluster itself writes.
func absentRest(t *testing.T) {
	t.Helper()
	terminal(t, ".").run("kubectl delete ns prod --ignore-not-found --timeout=120s && kubectl -n default delete pod curler --ignore-not-found")
}

// versions lists every object of the cluster with its version, but for what Kubernetes itself writes all the time: leases, events, nodes, and the status of pods.
func (s *shell) versions() []string {
	s.t.Helper()
	text := s.run(`kubectl api-resources --verbs=list -o name | grep -v -e '^leases' -e '^events' -e '^nodes$' -e '^componentstatuses$' -e metrics | paste -sd, |
xargs -I{} kubectl get {} -A --ignore-not-found -o json |
jq -r '.items[] | "\(.kind) \(.metadata.namespace // "")/\(.metadata.name) \(if .kind == "Pod" then .metadata.generation else .metadata.resourceVersion end)"' | sort`)
	return text.lines()
}

// quiet fails the test if anything is written while nobody asks for anything.
func (s *shell) quiet(length time.Duration) {
	s.t.Helper()
	// What goes on already has to end first: two looks, three seconds apart, that are the same.
	var before []string
	eventually(s.t, time.Minute, func() error {
		before = s.versions()
		time.Sleep(3 * time.Second) // what is looked for is that nothing happens
		return empty("written meanwhile", strings.Join(changes(before, s.versions()), "\n"))
	})
	if len(before) < 50 {
		s.t.Fatalf("only %d objects were looked at: %v", len(before), before)
	}
	time.Sleep(length) // as above
	for _, change := range changes(before, s.versions()) {
		s.t.Errorf("in %s at rest: %s", length, change)
	}
}

// changes are the lines of either list that the other has not.
func changes(before, after []string) []string {
	var list []string
	for _, line := range before {
		if !slices.Contains(after, line) {
			list = append(list, "before: "+line)
		}
	}
	for _, line := range after {
		if !slices.Contains(before, line) {
			list = append(list, "after: "+line)
		}
	}
	return list
}

// TestNothingIsWrittenAtRest has meshes, nodes, services and pods in the cluster, some of them with faults, and looks at the versions of all objects for a minute.
func TestNothingIsWrittenAtRest(t *testing.T) {
	absentRest(t)
	s := shop(t, "rest", shopMesh, shopService, shopGateway, shopApps, `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: dangling, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: dangling}}
  backends: [{virtualService: {virtualServiceRef: {name: nobody}}}]
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: tls, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: tls}}
  listeners: [{portMapping: {port: 8443, protocol: http}, tls: {mode: STRICT, certificate: {file: {certificateChain: /certs/tls.crt, privateKey: /certs/tls.key}}}}]
  serviceDiscovery: {dns: {hostname: tls.SHOP.svc.cluster.local}}
`)
	s.shopOpens("rest")
	s.condition("virtualnode/dangling", "rest", "ResolvedRefs", "False", "RefNotFound")
	s.condition("virtualnode/tls", "rest", "Programmed", "False", "NotYetSupported")
	s.quiet(time.Minute)
}
