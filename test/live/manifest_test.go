// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package live_test

import (
	"fmt"
	"strings"
)

// plain is one HTTP listener on 8080.
const plain = "{portMapping: {port: 8080, protocol: http}}"

func docs(list ...string) string { return strings.Join(list, "---\n") }

// meshOf is the mesh m1 with namespace shop in it.
func meshOf(filter string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Namespace
metadata:
  name: shop
  labels: {mesh: m1}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: Mesh
metadata: {name: m1}
spec:
  namespaceSelector: {matchLabels: {mesh: m1}}
  egressFilter: {type: %s}
`, filter)
}

// nodeOf is a virtual node that is found through the Service of its name. Its listener and further fields of its spec are flow style YAML.
func nodeOf(name, listener string, more ...string) string {
	text := fmt.Sprintf(`apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: %[1]s, namespace: shop}
spec:
  podSelector: {matchLabels: {app: %[1]s}}
  listeners: [%[2]s]
  serviceDiscovery: {dns: {hostname: %[1]s.shop.svc.cluster.local}}
`, name, listener)
	for _, m := range more {
		text += "  " + m + "\n"
	}
	return text
}

// backends is the field of a node that lists virtual services.
func backends(names ...string) string {
	list := make([]string, 0, len(names))
	for _, n := range names {
		list = append(list, fmt.Sprintf("{virtualService: {virtualServiceRef: {name: %s}}}", n))
	}
	return "backends: [" + strings.Join(list, ", ") + "]"
}

// provided is a virtual service that a node provides.
func provided(name, nodeName string) string {
	return fmt.Sprintf(`apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: %[1]s, namespace: shop}
spec:
  awsName: %[1]s.shop.svc.cluster.local
  provider: {virtualNode: {virtualNodeRef: {name: %[2]s}}}
`, name, nodeName)
}

// routed is a virtual service with a router of the same name. The router's port mapping and its routes are flow style YAML.
func routed(name, mapping string, routes ...string) string {
	return fmt.Sprintf(`apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: %[1]s, namespace: shop}
spec:
  awsName: %[1]s.shop.svc.cluster.local
  provider: {virtualRouter: {virtualRouterRef: {name: %[1]s}}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualRouter
metadata: {name: %[1]s, namespace: shop}
spec:
  listeners: [{portMapping: %[2]s}]
  routes:
    - %[3]s
`, name, mapping, strings.Join(routes, "\n    - "))
}

// httpMapping is the port mapping of most routers.
const httpMapping = "{port: 8080, protocol: http}"

// httpRoute is an HTTP route; match and further fields are flow style YAML, targets are "node weight".
func httpRoute(name string, priority int, match, more string, targets ...string) string {
	if more != "" {
		more = ", " + more
	}
	return fmt.Sprintf("{name: %s, priority: %d, httpRoute: {match: %s, action: {weightedTargets: [%s]}%s}}", name, priority, match, weighted(targets), more)
}

func weighted(targets []string) string {
	list := make([]string, 0, len(targets))
	for _, t := range targets {
		name, weight, _ := strings.Cut(t, " ")
		list = append(list, fmt.Sprintf("{virtualNodeRef: {name: %s}, weight: %s}", name, weight))
	}
	return strings.Join(list, ", ")
}

// service writes a Service with its addresses and the ready endpoints behind it.
func (s *site) service(name string, port int, pods ...*pod) {
	s.t.Helper()
	s.slices(name, port, "{ready: true, serving: true, terminating: false}", pods, nil)
}

// slices writes a Service and its EndpointSlices: ready pods in a given condition, and pods that are on their way out.
func (s *site) slices(name string, port int, condition string, pods, leaving []*pod) {
	s.t.Helper()
	families := []bool{false}
	if s.node.IPv6() {
		families = append(families, true)
	}
	ips := make([]string, 0, 2)
	for _, v6 := range families {
		ips = append(ips, fmt.Sprintf("%q", s.address(name, v6)))
	}
	text := fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %s, namespace: shop}
spec:
  clusterIP: %s
  clusterIPs: [%s]
  ports: [{name: p, port: %d}]
`, name, ips[0], strings.Join(ips, ", "), port)
	for _, v6 := range families {
		family := "IPv4"
		if v6 {
			family = "IPv6"
		}
		var list []string
		for _, p := range pods {
			list = append(list, fmt.Sprintf("{addresses: [%q], conditions: %s}", p.address(v6), condition))
		}
		for _, p := range leaving {
			list = append(list, fmt.Sprintf("{addresses: [%q], conditions: {ready: false, serving: true, terminating: true}}", p.address(v6)))
		}
		text += fmt.Sprintf(`---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-%[2]s, namespace: shop, labels: {kubernetes.io/service-name: %[1]s}}
addressType: %[3]s
ports: [{name: p, port: %[4]d, protocol: TCP}]
endpoints: [%[5]s]
`, name, strings.ToLower(family), family, port, strings.Join(list, ", "))
	}
	s.write("service-"+name+".yaml", text)
}

// address is the pod's own, IPv4 or IPv6.
func (p *pod) address(v6 bool) string {
	for _, a := range p.addresses {
		if a.Is6() == v6 {
			return a.String()
		}
	}
	p.s.t.Fatalf("%s has no such address", p.name)
	return ""
}
