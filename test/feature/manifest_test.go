// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package feature_test

import (
	"fmt"
	"strings"
	"testing"
)

// web is the node whose proxy most tests look through: it calls api, which a router splits over two versions, and pulse, whose endpoints tests change
// in order to see all that came before.
const (
	web   = "mesh/m1/virtualNode/web_shop"
	pulse = "cds_egress_m1_pulse_shop_http_8080"
	v1    = "cds_egress_m1_api-v1_shop_http_8080"
	v2    = "cds_egress_m1_api-v2_shop_http_8080"

	apiRoutes = "rds_egress_http_8080"
	inbound   = "lds_ingress_0.0.0.0_15000"
	outbound  = "lds_egress_0.0.0.0_15001"
	ownRoutes = "rds_ingress_http_8080"
)

// base is the mesh of most tests, by file.
func base() map[string]string {
	return map[string]string{
		"00-mesh.yaml":      meshOf("ALLOW_ALL"),
		"10-web.yaml":       webNode("api", "pulse"),
		"20-api.yaml":       docs(node("api-v1"), node("api-v2"), routedAPI()),
		"21-router.yaml":    split(90, 10),
		"30-pulse.yaml":     docs(node("pulse"), provided("pulse", "pulse")),
		"40-endpoints.yaml": docs(endpoints("web", "10.1.0.1"), endpoints("api-v1", "10.1.1.1"), endpoints("api-v2", "10.1.2.1")),
		"41-pulse.yaml":     endpoints("pulse", "10.1.3.1"),
	}
}

func docs(list ...string) string { return strings.Join(list, "---\n") }

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

func webNode(backends ...string) string {
	text := node("web")
	if len(backends) == 0 {
		return text
	}
	text += "  backends:\n"
	for _, b := range backends {
		text += fmt.Sprintf("    - virtualService: {virtualServiceRef: {name: %s}}\n", b)
	}
	return text
}

// node is a virtual node with one http listener on 8080, found through the Service of its name.
func node(name string) string {
	return fmt.Sprintf(`apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: %[1]s, namespace: shop}
spec:
  podSelector: {matchLabels: {app: %[1]s}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: %[1]s.shop.svc.cluster.local}}
`, name)
}

// provided is a virtual service that a node provides.
func provided(name, node string) string {
	return fmt.Sprintf(`apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: %[1]s, namespace: shop}
spec:
  awsName: %[1]s.shop.svc.cluster.local
  provider: {virtualNode: {virtualNodeRef: {name: %[2]s}}}
`, name, node)
}

// routedAPI is the virtual service api, which the router of the same name provides.
func routedAPI() string {
	return `apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: api, namespace: shop}
spec:
  awsName: api.shop.svc.cluster.local
  provider: {virtualRouter: {virtualRouterRef: {name: api}}}
`
}

// router is the router of api, with routes that are given as flow style YAML.
func router(routes ...string) string {
	text := `apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualRouter
metadata: {name: api, namespace: shop}
spec:
  listeners: [{portMapping: {port: 8080, protocol: http}}]
`
	if len(routes) == 0 {
		return text + "  routes: []\n"
	}
	return text + "  routes:\n    - " + strings.Join(routes, "\n    - ") + "\n"
}

// split is the router of api, whose one route shares all requests between two versions.
func split(one, two int) string {
	return router(fmt.Sprintf(
		"{name: all, httpRoute: {match: {prefix: /}, action: {weightedTargets: [{virtualNodeRef: {name: api-v1}, weight: %d}, {virtualNodeRef: {name: api-v2}, weight: %d}]}}}",
		one, two))
}

// to is a route to version one for a prefix.
func to(name, prefix string) string {
	return fmt.Sprintf("{name: %s, httpRoute: {match: {prefix: %s}, action: {weightedTargets: [{virtualNodeRef: {name: api-v1}, weight: 1}]}}}", name, prefix)
}

// endpoints is a Service and its one EndpointSlice.
func endpoints(service string, addresses ...string) string {
	text := fmt.Sprintf(`apiVersion: v1
kind: Service
metadata: {name: %[1]s, namespace: shop}
spec:
  clusterIP: None
  ports: [{name: http, port: 8080}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: %[1]s-x, namespace: shop, labels: {kubernetes.io/service-name: %[1]s}}
addressType: IPv4
ports: [{name: http, port: 8080, protocol: TCP}]
endpoints:
`, service)
	for _, a := range addresses {
		text += fmt.Sprintf("  - {addresses: [%s], conditions: {ready: true, serving: true, terminating: false}}\n", a)
	}
	if len(addresses) == 0 {
		text += "  []\n"
	}
	return text
}

// beat changes the endpoints of pulse and waits until the proxy has them, twice: what was to come of earlier changes has come by the second time, since the
// first may have been taken together with them, and a stream keeps its order. It returns what else came, endpoints left out that were sent a second time
// since the proxy asked for them: they follow their new cluster unasked, and a server cannot know which of the two came first.
func beat(t *testing.T, p *proxy) []string {
	t.Helper()
	const want = eds + " ~" + pulse
	for beats := range 2 {
		p.beats++
		p.w.write("41-pulse.yaml", endpoints("pulse", fmt.Sprintf("10.2.0.%d", p.beats)))
		p.await("the pulse", func() bool {
			return beats < strings.Count(strings.Join(p.log, ","), want)
		})
	}
	var rest []string
	unasked := map[string]bool{}
	for _, line := range p.since() {
		if line == want {
			continue
		}
		if name, again := strings.CutPrefix(line, eds+" ="); again && unasked[name] {
			continue
		}
		if name, sent := strings.CutPrefix(line, eds+" +"); sent {
			unasked[name] = true
		}
		rest = append(rest, line)
	}
	return rest
}
