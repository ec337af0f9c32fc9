// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
)

// originalDefinition is one of the original controllers' definitions, as far as it matters here: one version, which is stored, and no conversion.
const originalDefinition = `---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: PLURAL.appmesh.k8s.aws, annotations: {controller-gen.kubebuilder.io/version: v0.14.0}}
spec:
  group: appmesh.k8s.aws
  names: {kind: KIND, listKind: KINDList, plural: PLURAL, singular: SINGULAR}
  scope: SCOPE
  versions:
    - name: VERSION
      served: true
      storage: true
      subresources: {status: {}}
      schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`

// originalDefinitions are those of the kinds.
func originalDefinitions(version string, kinds ...string) string {
	var all strings.Builder
	for _, kind := range kinds {
		singular, scope := strings.ToLower(kind), "Namespaced"
		plural := singular + "s"
		if kind == "Mesh" {
			plural, scope = "meshes", "Cluster"
		}
		all.WriteString(strings.NewReplacer("PLURAL", plural, "SINGULAR", singular, "KIND", kind, "SCOPE", scope, "VERSION", version).Replace(originalDefinition))
	}
	return all.String()
}

// originalMesh and originalObjects are what people wrote, with what the original controller of v1beta2 added: names, references with UIDs, finalizers, and status below.
const originalMesh = `
apiVersion: v1
kind: Namespace
metadata: {name: SHOP, labels: {mesh: SHOP, appmesh.k8s.aws/sidecarInjectorWebhook: enabled}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: Mesh
metadata: {name: SHOP, finalizers: [finalizers.appmesh.k8s.aws/mesh-members, finalizers.appmesh.k8s.aws/aws-appmesh-resources]}
spec: {awsName: SHOP, namespaceSelector: {matchLabels: {mesh: SHOP}}}
`

const originalObjects = `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: api, namespace: SHOP, finalizers: [finalizers.appmesh.k8s.aws/aws-appmesh-resources]}
spec:
  awsName: api_SHOP
  meshRef: {name: SHOP, uid: MESH-UID}
  podSelector: {matchLabels: {app: api}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: api.SHOP.svc.cluster.local}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: web, namespace: SHOP, finalizers: [finalizers.appmesh.k8s.aws/aws-appmesh-resources]}
spec:
  awsName: web_SHOP
  meshRef: {name: SHOP, uid: MESH-UID}
  podSelector: {matchLabels: {app: web}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: web.SHOP.svc.cluster.local}}
  backends: [{virtualService: {virtualServiceRef: {name: api}}}]
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: api, namespace: SHOP, finalizers: [finalizers.appmesh.k8s.aws/aws-appmesh-resources]}
spec:
  awsName: api.SHOP.svc.cluster.local
  meshRef: {name: SHOP, uid: MESH-UID}
  provider: {virtualNode: {virtualNodeRef: {name: api}}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: hanging, namespace: SHOP, finalizers: [finalizers.appmesh.k8s.aws/aws-appmesh-resources, finalizers.appmesh.k8s.aws/aws-cloudmap-resources]}
spec: {awsName: hanging_SHOP, meshRef: {name: SHOP, uid: MESH-UID}, podSelector: {matchLabels: {app: hanging}}}
---
apiVersion: v1
kind: Namespace
metadata: {name: SHOP-doomed, labels: {mesh: SHOP}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: node, namespace: SHOP-doomed, finalizers: [finalizers.appmesh.k8s.aws/aws-appmesh-resources]}
spec: {awsName: node_SHOP-doomed, meshRef: {name: SHOP, uid: MESH-UID}, podSelector: {matchLabels: {app: node}}}
`

// originalStatus is what the original controller wrote.
const originalStatus = `{"status":{"virtualNodeARN":"arn:aws:appmesh:us-west-2:999999999999:mesh/SHOP/virtualNode/api_SHOP","observedGeneration":1,
"conditions":[{"type":"VirtualNodeActive","status":"False","lastTransitionTime":"2024-01-01T00:00:00Z"}]}}`

// TestTheOriginalControllerIsUpgradedInPlace has the original's chart, its definitions, and objects as it left them, some of which hang in their deletion. One "helm upgrade" later everything
// works, and what hung is gone.
func TestTheOriginalControllerIsUpgradedInPlace(t *testing.T) {
	absentRest(t)
	absent(t)
	touched(t)
	s := terminal(t, ".")
	s.run("export NS=orig")
	s.run("kubectl create ns appmesh-system")
	s.run("kubectl apply -f -", originalDefinitions("v1beta2", "Mesh", "VirtualNode", "VirtualService", "VirtualRouter", "VirtualGateway", "GatewayRoute", "BackendGroup"))
	s.run("kubectl wait crd --all --for=condition=Established --timeout=60s")
	s.applied(in("orig", originalMesh))
	uid := s.run("kubectl get mesh orig -o jsonpath='{.metadata.uid}'").text
	s.applied(replace(in("orig", originalObjects), "MESH-UID", uid))
	s.run("kubectl -n $NS patch virtualnode api --subresource=status --type merge -p '" + in("orig", originalStatus) + "'")
	s.run("kubectl -n $NS delete virtualnode hanging --wait=false && kubectl delete ns $NS-doomed --wait=false")
	s.run("helm upgrade -i appmesh-controller test/charts/testdata/original-1.13 -n appmesh-system")
	s.run("kubectl -n $NS get virtualnode hanging -o jsonpath='{.metadata.deletionTimestamp}'").says("20")

	s.run("helm repo add eks " + here.charts + " --force-update")
	s.run(install)
	s.run("kubectl -n $NS wait --for=delete virtualnode/hanging --timeout=60s")
	s.run("kubectl wait --for=delete ns/$NS-doomed --timeout=90s")
	for _, object := range []string{"virtualnode/api", "virtualnode/web", "virtualservice/api"} {
		s.condition(object, "orig", "Programmed", "True", "")
	}
	s.condition("virtualnode/api", "orig", "VirtualNodeActive", "True", "")
	s.run("kubectl -n $NS get virtualnode api -o jsonpath='{.spec.awsName} {.spec.meshRef.uid} {.status.virtualNodeARN}'").is("api_orig " + uid +
		" arn:aws:appmesh:us-west-2:111122223333:mesh/orig/virtualNode/api_orig")
	s.run("kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations -o name").saysNot("appmesh-controller-mutating-webhook-configuration", "appmesh-controller-validating")
	s.run("kubectl get crd virtualnodes.appmesh.k8s.aws -o jsonpath='{.status.storedVersions}'").is(`["v1beta2"]`)
	s.apply("orig", shopApps)
	s.shopOpens("orig")
	// What is left can be deleted, whatever its finalizers, and so can the mesh before its members.
	s.run("kubectl delete mesh $NS --timeout=60s")
	s.run("kubectl delete ns $NS --timeout=120s")
}

// TestTheFirstControllerIsUpgradedInPlace does so with the original's first generation, whose objects are stored as v1beta1.
func TestTheFirstControllerIsUpgradedInPlace(t *testing.T) {
	absentRest(t)
	absent(t)
	touched(t)
	s := terminal(t, ".")
	s.run("export NS=first")
	s.run("kubectl create ns appmesh-system")
	s.run("kubectl apply -f -", originalDefinitions("v1beta1", "Mesh", "VirtualNode", "VirtualService"))
	s.run("kubectl wait crd --all --for=condition=Established --timeout=60s")
	s.applied(in("first", firstObjects))
	s.run("kubectl -n $NS delete virtualnode hanging --wait=false")
	s.run("helm upgrade -i appmesh-controller test/charts/testdata/original-0.6 -n appmesh-system")

	s.run("helm repo add eks " + here.charts + " --force-update")
	s.run(install)
	s.run("kubectl -n $NS wait --for=delete virtualnode/hanging --timeout=60s")
	for _, object := range []string{"virtualnode/api", "virtualnode/web", "virtualservice/api.first.svc.cluster.local"} {
		s.condition(object, "first", "Programmed", "True", "")
	}
	s.run("kubectl -n $NS get virtualservices.v1beta1.appmesh.k8s.aws api.first.svc.cluster.local -o jsonpath='{.spec.routes[0].http.match.prefix}'").is("/")
	s.apply("first", shopApps)
	s.shopOpens("first")
	s.run("kubectl delete mesh $NS --timeout=60s")
	s.run("kubectl delete ns $NS --timeout=120s")
}

// firstObjects are what people wrote for the first generation, with the finalizers of its controller.
const firstObjects = `
apiVersion: v1
kind: Namespace
metadata: {name: SHOP, labels: {appmesh.k8s.aws/sidecarInjectorWebhook: enabled}}
---
apiVersion: appmesh.k8s.aws/v1beta1
kind: Mesh
metadata: {name: SHOP, finalizers: [meshDeletion.finalizers.appmesh.k8s.aws]}
spec: {serviceDiscoveryType: dns}
---
apiVersion: appmesh.k8s.aws/v1beta1
kind: VirtualNode
metadata: {name: api, namespace: SHOP, finalizers: [virtualNodeDeletion.finalizers.appmesh.k8s.aws]}
spec: {meshName: SHOP, listeners: [{portMapping: {port: 8080, protocol: http}}], serviceDiscovery: {dns: {hostName: api.SHOP.svc.cluster.local}}}
---
apiVersion: appmesh.k8s.aws/v1beta1
kind: VirtualNode
metadata: {name: web, namespace: SHOP, finalizers: [virtualNodeDeletion.finalizers.appmesh.k8s.aws]}
spec:
  meshName: SHOP
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostName: web.SHOP.svc.cluster.local}}
  backends: [{virtualService: {virtualServiceName: api.SHOP.svc.cluster.local}}]
---
apiVersion: appmesh.k8s.aws/v1beta1
kind: VirtualService
metadata: {name: api.SHOP.svc.cluster.local, namespace: SHOP, finalizers: [virtualServiceDeletion.finalizers.appmesh.k8s.aws]}
spec:
  meshName: SHOP
  virtualRouter: {name: api-router}
  routes: [{name: all, http: {match: {prefix: /}, action: {weightedTargets: [{virtualNodeName: api, weight: 1}]}}}]
---
apiVersion: appmesh.k8s.aws/v1beta1
kind: VirtualNode
metadata: {name: hanging, namespace: SHOP, finalizers: [virtualNodeDeletion.finalizers.appmesh.k8s.aws]}
spec: {meshName: SHOP, listeners: [{portMapping: {port: 8080, protocol: http}}], serviceDiscovery: {dns: {hostName: hanging.SHOP.svc.cluster.local}}}
`

// TestASecondControllerByMistake installs the chart once more, in another namespace: Helm refuses it in words. Made by force, the second one says what is wrong, is not ready, and the first goes on.
func TestASecondControllerByMistake(t *testing.T) {
	s := shop(t, "twice", shopMesh, shopService, shopApps)
	touched(t)
	s.shopOpens("twice")
	s.applied(in("tulle-two", "\napiVersion: v1\nkind: Namespace\nmetadata: {name: SHOP}\n"))
	s.refused("helm upgrade -i second eks/appmesh-controller -n tulle-two").says("appmesh-controller", "cannot be imported into the current release", "appmesh-system")
	s.refused("helm upgrade -i appmesh-controller eks/appmesh-controller -n tulle-two").says("cannot be imported into the current release", "appmesh-system")
	s.run("helm -n tulle-two list -q -a | xargs -r helm -n tulle-two uninstall --no-hooks")

	const second = `helm template second eks/appmesh-controller --kube-version 1.30.0 -n tulle-two --no-hooks --set fullnameOverride=second >"$E2E_EXPORTS.yaml"`
	t.Cleanup(func() {
		if out, err := afterwards(s.dir, "kubectl delete clusterrole,clusterrolebinding second --ignore-not-found", ""); err != nil {
			t.Errorf("cleaning up: %v: %s", err, out)
		}
	})
	s.run(second + ` && kubectl apply -n tulle-two --server-side --force-conflicts -f "$E2E_EXPORTS.yaml"`)
	s.soon("kubectl -n tulle-two logs deploy/second", "the control plane in namespace appmesh-system converts it", "uninstall one of the two")
	s.run("kubectl -n tulle-two get pods -l app.kubernetes.io/name=appmesh-controller --no-headers").says("0/1")
	s.refused("bin/tulle check --cluster").says("TwoControllers", "tulle-two")
	s.soon(askAPI, "api 200")
	s.run("kubectl -n $NS get virtualnodes.v1beta1.appmesh.k8s.aws api") // the first one still converts
	// The way on: the second is deleted, and the first takes its webhooks back with its next upgrade.
	s.run("kubectl delete ns tulle-two --timeout=120s")
	s.run(install)
	s.apply("twice", lateApp)
	s.podsReady("twice", "late=yes", "2/2", 1)
}
