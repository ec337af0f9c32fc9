// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import "testing"

// restrictedApps are the two pods of a shop, in a namespace that lets nobody have NET_ADMIN. Their nodes say only which pods they are, and there is no Service.
const restrictedApps = `
apiVersion: v1
kind: Namespace
metadata:
  name: SHOP
  labels: {mesh: SHOP, appmesh.k8s.aws/sidecarInjectorWebhook: enabled, pod-security.kubernetes.io/enforce: restricted}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: Mesh
metadata:
  name: SHOP
  annotations: {appmesh.k8s.aws/placeholder-services: enabled}
spec:
  namespaceSelector: {matchLabels: {mesh: SHOP}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: api, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: api}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: web, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: web}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  backends: [{virtualService: {virtualServiceRef: {name: api}}}]
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: api, namespace: SHOP}
spec:
  selector: {matchLabels: {app: api}}
  template:
    metadata: {labels: {app: api}, annotations: {appmesh.k8s.aws/appmeshCNI: enabled}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
      containers:
        - {name: app, image: "tulle-e2e/color:v1", env: [{name: COLOR, value: api}], securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: SHOP}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}, annotations: {appmesh.k8s.aws/appmeshCNI: enabled}}
    spec:
      securityContext: {runAsNonRoot: true, runAsUser: 1000, seccompProfile: {type: RuntimeDefault}}
      containers:
        - {name: app, image: "tulle-e2e/client:v1", securityContext: {allowPrivilegeEscalation: false, capabilities: {drop: [ALL]}}}
`

//nolint:paralleltest // it installs the chart with values of its own
func TestPodsWithoutNetAdminAreCapturedByTheCNIPlugin(t *testing.T) {
	touched(t)
	installed(t, "--set cni.enabled=true", "--set placeholderServices=annotated")
	s := terminal(t, ".")
	s.run("kubectl -n appmesh-system rollout status daemonset appmesh-cni --timeout=120s")
	s.run("export NS=cni")
	s.applied(in("cni", restrictedApps+"---"+shopService))
	s.podsReady("cni", "app=api", "2/2", 1)
	s.podsReady("cni", "app=web", "2/2", 1)
	s.run("kubectl -n cni get pods -o jsonpath='{.items[*].spec.initContainers[*].name}'").saysNot("proxyinit")
	// The placeholder Service gives the name an address, and Envoy answers at both ends: the application's own answer alone has no such header.
	s.soon("kubectl -n cni get service api -o jsonpath='{.spec.selector}{.spec.ports[0].port}'", "8080")
	s.soon(askAPI, "api 200")
	s.run("kubectl -n cni exec deploy/web -c app -- curl -s -i -m 10 http://api.cni.svc.cluster.local:8080/").says("server: envoy")
	// It goes with its virtual service.
	s.run("kubectl -n cni delete virtualservices.appmesh.k8s.aws api")
	s.soon("kubectl -n cni get services -o name | wc -l", "0")
	s.run("helm upgrade appmesh-controller eks/appmesh-controller --namespace appmesh-system --reuse-values --set cni.enabled=false")
	s.soon("kubectl -n appmesh-system get pods -l app.kubernetes.io/name=appmesh-cni -o name | wc -l", "0")
	// Who started with the plugin stays, and others start without it.
	s.run("kubectl -n cni get pods -o wide").says("2/2")
	s.applied("apiVersion: v1\nkind: Namespace\nmetadata: {name: cni-after}\n")
	s.run("kubectl -n cni-after run bare --image=tulle-e2e/color:v1")
	s.podsReady("cni-after", "run=bare", "1/1", 1)
}
