// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e && measure

package e2e_test

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// objectsMeasured is how many virtual nodes there are, and how many virtual services.
const objectsMeasured = 1000

// resting is how long the control plane is looked at while nobody asks for anything.
const resting = time.Minute

// TestMeasureTheControlPlaneAtRest looks at the controller, and at what is written, with a handful of objects and with two thousand.
func TestMeasureTheControlPlaneAtRest(t *testing.T) {
	absentRest(t)
	s := shop(t, "calm", shopMesh, shopService, shopApps)
	s.shopOpens("calm")
	a := apiServer(t)
	a.rests(s, "a few objects, two proxies")

	began := now()
	const batch = 100
	for first := 0; first < objectsMeasured; first += batch {
		var all strings.Builder
		for n := range batch {
			all.WriteString(replace(manyObject, "NAME", fmt.Sprintf("many-%04d", first+n)))
		}
		s.run("kubectl create -f - >/dev/null", in("calm", all.String()))
	}
	created := now()
	for _, kind := range []string{"virtualnodes", "virtualservices"} {
		eventually(t, 3*time.Minute, func() error {
			text, err := s.try(`kubectl -n calm get ` + kind + ` -o jsonpath='{range .items[*]}{.status.conditions[?(@.type=="Programmed")].status}{"\n"}{end}' | grep -c True`)
			if err != nil || text != fmt.Sprint(objectsMeasured+map[string]int{"virtualnodes": 2, "virtualservices": 1}[kind]) {
				return fmt.Errorf("%s programmed: %s: %w", kind, text, err)
			}
			return nil
		})
	}
	row(t, fmt.Sprintf("`kubectl create` of %d virtual nodes and as many services", objectsMeasured), "%s", created.Sub(began).Round(time.Second))
	row(t, "until the status of the last of them is written", "%s more", now().Sub(created).Round(time.Second))
	a.rests(s, fmt.Sprintf("%d virtual nodes and %d virtual services, two proxies", objectsMeasured, objectsMeasured))
}

// manyObject is a virtual node and its service.
const manyObject = `---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: NAME, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: NAME}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: NAME.SHOP.svc.cluster.local}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: NAME, namespace: SHOP}
spec: {provider: {virtualNode: {virtualNodeRef: {name: NAME}}}}
`

// rests measures for a minute in which nothing happens, and fails the test if anything of the mesh is written.
func (a *api) rests(s *shell, with string) {
	s.t.Helper()
	pod := s.run(controllerPods + " -o jsonpath='{.items[0].metadata.name}'").text
	metrics := "/api/v1/namespaces/appmesh-system/pods/" + pod + ":8080/proxy/metrics"
	s.quiet(0)
	cpu, writes := a.number(metrics, "process_cpu_seconds_total"), a.writes()
	time.Sleep(resting) // what is looked for is that nothing happens
	used := (a.number(metrics, "process_cpu_seconds_total") - cpu) / resting.Seconds()
	row(s.t, "controller at rest, "+with, "%.1f %% of one core, %.0f MiB resident, %.0f MiB heap", used*100,
		a.number(metrics, "process_resident_memory_bytes")/(1<<20), a.number(metrics, "go_memstats_heap_inuse_bytes")/(1<<20))
	var seen []string
	for what, n := range a.writes() {
		if n -= writes[what]; n == 0 {
			continue
		}
		seen = append(seen, fmt.Sprintf("%s %d", what, n))
		if !clusterWrites(what) {
			s.t.Errorf("in a minute at rest, %s: %d of %s", with, n, what)
		}
	}
	slices.Sort(seen)
	row(s.t, "writes in a minute at rest, "+with, "%s", strings.Join(seen, ", "))
}

// writes counts the requests that change something, which the API server has answered so far, by what they are.
func (a *api) writes() map[string]int {
	a.t.Helper()
	counts := map[string]int{}
	requests := regexp.MustCompile(`(?m)^apiserver_request_total\{(.*verb="(?:APPLY|DELETE|PATCH|POST|PUT)".*)\} (\S+)$`)
	label := regexp.MustCompile(`(resource|subresource|verb)="([^"]*)"`)
	for _, match := range requests.FindAllStringSubmatch(a.text("/metrics"), -1) {
		labels := map[string]string{}
		for _, l := range label.FindAllStringSubmatch(match[1], -1) {
			labels[l[1]] = l[2]
		}
		n, err := strconv.ParseFloat(match[2], 64)
		if err != nil {
			a.t.Fatal(err)
		}
		counts[strings.TrimSpace(labels["verb"]+" "+labels["resource"]+" "+labels["subresource"])] += int(n)
	}
	return counts
}

// clusterWrites tells what Kubernetes does by itself, and leases, from what nobody should do at rest. Reviews are questions, which are asked by POST; the status of nodes
// and pods is the kubelet's, and the control plane has no right to it.
func clusterWrites(what string) bool {
	for _, own := range []string{"leases", "nodes status", "pods status", "tokenreviews", "subjectaccessreviews", "selfsubjectreviews", "serviceaccounts token"} {
		if _, resource, _ := strings.Cut(what, " "); resource == own {
			return true
		}
	}
	return false
}
