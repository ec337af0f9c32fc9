// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
)

// shopMesh is what the cases of users begin with: a namespace in a mesh, and two nodes, of which one calls the other. Each case has its own, SHOP.
const shopMesh = `
apiVersion: v1
kind: Namespace
metadata:
  name: SHOP
  labels: {mesh: SHOP, gw: SHOP, appmesh.k8s.aws/sidecarInjectorWebhook: enabled}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: Mesh
metadata: {name: SHOP}
spec:
  namespaceSelector: {matchLabels: {mesh: SHOP}}
  egressFilter: {type: ALLOW_ALL}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: api, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: api}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: api.SHOP.svc.cluster.local}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: web, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: web}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: web.SHOP.svc.cluster.local}}
  backends: [{virtualService: {virtualServiceRef: {name: api}}}]
`

// shopService is the virtual service between them.
const shopService = `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: api, namespace: SHOP}
spec:
  awsName: api.SHOP.svc.cluster.local
  provider: {virtualNode: {virtualNodeRef: {name: api}}}
`

// shopGateway is a gateway for it.
const shopGateway = `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualGateway
metadata: {name: front, namespace: SHOP}
spec:
  namespaceSelector: {matchLabels: {gw: SHOP}}
  podSelector: {matchLabels: {app: front}}
  listeners: [{portMapping: {port: 8088, protocol: http}}]
`

// shopApps are the pods: api answers "api", and web has curl and the load generator.
const shopApps = `
apiVersion: v1
kind: Service
metadata: {name: api, namespace: SHOP}
spec: {selector: {app: api}, ports: [{port: 8080}]}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: SHOP}
spec: {selector: {app: web}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: SHOP}
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}}
    spec: {containers: [{name: app, image: "tulle-e2e/color:v1", env: [{name: COLOR, value: api}]}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: SHOP}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "tulle-e2e/client:v1"}]}
`

// askAPI is a request from the pod web.
const askAPI = `kubectl -n $NS exec deploy/web -c app -- curl -s -m 10 -w ' %{http_code}' http://api.$NS.svc.cluster.local:8080/`

// shop applies manifests for a case in a namespace and a mesh of its own; SHOP stands for both in the manifests, and $NS in lines of the shell.
func shop(t *testing.T, namespace string, manifests ...string) *shell {
	t.Helper()
	installed(t)
	return shopWith(t, namespace, manifests...)
}

// shopWith is shop with the controller as it is installed.
func shopWith(t *testing.T, namespace string, manifests ...string) *shell {
	t.Helper()
	s := terminal(t, ".")
	s.run("export NS=" + namespace)
	s.applied(in(namespace, strings.Join(manifests, "\n---\n")))
	return s
}

// in puts a namespace into a manifest.
func in(namespace, manifest string) string { return strings.ReplaceAll(manifest, "SHOP", namespace) }

// apply applies one more manifest of a case. It goes away with the namespace.
func (s *shell) apply(namespace, manifest string) output {
	s.t.Helper()
	return s.run("kubectl apply -f -", in(namespace, manifest))
}

// shopOpens waits until both apps of a shop are there with their sidecars, and web gets an answer from api.
func (s *shell) shopOpens(namespace string) {
	s.t.Helper()
	s.podsReady(namespace, "app=api", "2/2", 1)
	s.podsReady(namespace, "app=web", "2/2", 1)
	s.soon(askAPI, "api 200")
}
