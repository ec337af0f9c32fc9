// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"fmt"
	"testing"
	"time"
)

const (
	controllerAway = "kubectl -n appmesh-system scale deployment appmesh-controller --replicas=0 && kubectl -n appmesh-system wait --for=delete pod -l app.kubernetes.io/name=appmesh-controller --timeout=90s"
	controllerBack = "kubectl -n appmesh-system scale deployment appmesh-controller --replicas=1 && " + rolledOut
)

// lateApp is one more application of the node api: a Deployment whose pods need the webhook.
const lateApp = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: late, namespace: SHOP}
spec:
  selector: {matchLabels: {app: api, late: "yes"}}
  template:
    metadata: {labels: {app: api, late: "yes"}}
    spec: {containers: [{name: app, image: "tulle-e2e/color:v1"}]}
`

// unmeshed is a namespace that nobody asked the mesh for, with an application.
const unmeshed = `
apiVersion: v1
kind: Namespace
metadata: {name: SHOP}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: plain, namespace: SHOP}
spec:
  selector: {matchLabels: {app: plain}}
  template:
    metadata: {labels: {app: plain}}
    spec: {containers: [{name: app, image: "tulle-e2e/color:v1"}]}
`

// oldNode is a node of the first API version.
const oldNode = `
apiVersion: appmesh.k8s.aws/v1beta1
kind: VirtualNode
metadata: {name: old, namespace: SHOP}
spec: {meshName: SHOP, listeners: [{portMapping: {port: 9080, protocol: http}}], serviceDiscovery: {dns: {hostName: old.SHOP.svc.cluster.local}}}
`

// doomed is a namespace with mesh objects, which is to be deleted.
const doomed = `
apiVersion: v1
kind: Namespace
metadata: {name: SHOP-doomed, labels: {mesh: SHOP}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: node, namespace: SHOP-doomed}
spec: {podSelector: {matchLabels: {app: node}}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: service, namespace: SHOP-doomed}
spec: {provider: {virtualNode: {virtualNodeRef: {name: node}}}}
`

// refusedPod waits until a Deployment's ReplicaSet says why it makes no pod, and returns what it says.
func (s *shell) refusedPod(deployment string, texts ...string) {
	s.t.Helper()
	s.soon("kubectl -n $NS get events --field-selector reason=FailedCreate -o jsonpath='{range .items[*]}{.involvedObject.name}: {.message}{\"\\n\"}{end}' | grep ^"+deployment, texts...)
	s.run("kubectl -n $NS get pods -l late --no-headers 2>/dev/null").is("")
}

// TestWhileTheControllerIsAwayOthersGoOn has no controller: pods of other namespaces start, those of the mesh wait and say why, everything can be deleted, and what waited starts later.
func TestWhileTheControllerIsAwayOthersGoOn(t *testing.T) {
	s := shop(t, "away", shopMesh, shopService, shopApps, oldNode, doomed)
	touched(t)
	s.shopOpens("away")
	s.run(controllerAway)
	s.applied(in("away-plain", unmeshed))
	s.podsReady("away-plain", "app=plain", "1/1", 1)
	s.soon(askAPI, "api 200") // proxies go on
	s.apply("away", lateApp)
	s.refusedPod("late", "failed calling webhook", "mpod.appmesh.k8s.aws", "appmesh-controller-webhook-service")
	s.refused("kubectl -n $NS patch virtualnode web --type merge -p '{\"spec\":{\"logging\":null}}'").says("failed calling webhook", "appmesh-controller-webhook-service")
	s.run("kubectl -n $NS delete virtualnode old --timeout=30s")
	s.run("kubectl -n $NS delete virtualservice api --timeout=30s")
	s.run("kubectl delete ns $NS-doomed --timeout=60s")
	s.run(controllerBack)
	s.podsReady("away", "late=yes", "2/2", 1)
	s.apply("away", shopService)
	s.soon(askAPI, "api 200")
}

// TestWhileTheControllerHangsOthersGoOn stops the controller's process, so that connections to it are taken and nothing answers.
func TestWhileTheControllerHangsOthersGoOn(t *testing.T) {
	s := shop(t, "hang", shopMesh, shopService, shopApps, doomed)
	touched(t)
	s.shopOpens("hang")
	const signal = `hack/lab/enter sh -c 'for p in $(pgrep -f "^(/usr/bin/)?tulle controller"); do kill -%s $p; done'`
	t.Cleanup(func() { _, _ = afterwards(s.dir, fmt.Sprintf(signal, "CONT"), "") })
	s.run(fmt.Sprintf(signal, "STOP"))
	s.applied(in("hang-plain", unmeshed))
	s.podsReady("hang-plain", "app=plain", "1/1", 1)
	s.run(fmt.Sprintf(signal, "STOP")) // if it was begun anew since
	began := now()
	s.refused("kubectl -n $NS patch virtualnode web --type merge -p '{\"spec\":{\"logging\":{\"accessLog\":{\"file\":{\"path\":\"/dev/stdout\"}}}}}'").says("failed calling webhook")
	tell(t, "a change is refused after %s", now().Sub(began).Round(time.Millisecond))
	s.run("kubectl -n $NS delete virtualservice api --timeout=30s")
	s.run("kubectl delete ns $NS-doomed --timeout=60s")
	s.apply("hang", lateApp)
	// Its liveness probe has the kubelet begin it anew; nobody needs to do anything.
	s.run(rolledOut)
	s.podsReady("hang", "late=yes", "2/2", 1)
	s.apply("hang", shopService)
	s.soon(askAPI, "api 200")
}

// TestAPodOfTheHostsNetworkIsRefusedWithAWayOn has a pod that cannot have a proxy.
func TestAPodOfTheHostsNetworkIsRefusedWithAWayOn(t *testing.T) {
	t.Parallel()
	s := shop(t, "hostnet", shopMesh)
	onHost := replace(lateApp, "spec: {containers", "spec: {hostNetwork: true, terminationGracePeriodSeconds: 1, containers")
	s.apply("hostnet", onHost)
	s.refusedPod("late", "cannot have a proxy", "hostNetwork", "appmesh.k8s.aws/sidecarInjectorWebhook: disabled")
	s.apply("hostnet", replace(onHost, `late: "yes"}}
    spec`, `late: "yes"}, annotations: {appmesh.k8s.aws/sidecarInjectorWebhook: disabled}}
    spec`))
	s.podsReady("hostnet", "late=yes", "1/1", 1)
}
