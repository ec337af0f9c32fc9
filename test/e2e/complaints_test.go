// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"testing"
	"time"
)

// The six complaints that App Mesh's own authors had about the first version of its Kubernetes API, in their order.

// First: two virtual services of one name, in two namespaces, were one object of App Mesh, which the controller wrote back and forth without end.
func TestComplaint1TwoServicesThatClaimOneNameHaveOneOwner(t *testing.T) {
	absentRest(t)
	const claim = `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: mine, namespace: SHOP}
spec:
  awsName: my-api
  provider: {virtualNode: {virtualNodeRef: {name: api}}}
`
	first := shop(t, "claim-a", shopMesh, shopService, claim)
	first.condition("virtualservice/mine", "claim-a", "Accepted", "True", "")
	// Whoever comes second is told at once, and is not refused.
	time.Sleep(time.Second) // creation times are whole seconds
	first.applied(in("claim-b", `
apiVersion: v1
kind: Namespace
metadata: {name: SHOP, labels: {mesh: claim-a}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: api, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: api}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: api.SHOP.svc.cluster.local}}
`))
	first.run("kubectl apply -f - 2>&1", in("claim-b", claim)).says("virtualservice.appmesh.k8s.aws/mine created", "Warning:", "my-api", "claim-a/mine")
	message := first.condition("virtualservice/mine", "claim-b", "Accepted", "False", "Conflicted")
	if lacks("the condition", message, []string{"my-api", "claim-a/mine"}) != nil {
		t.Errorf("the message names neither the name nor its owner: %s", message)
	}
	first.condition("virtualservice/mine", "claim-a", "Accepted", "True", "")
	first.quiet(time.Minute)
	first.run("kubectl -n claim-a delete virtualservice mine --timeout=30s")
	first.condition("virtualservice/mine", "claim-b", "Accepted", "True", "")
	first.condition("virtualservice/mine", "claim-b", "Programmed", "True", "")
}

// Second: names were mangled, so that "my-node" and "my-node.namespace-a" were one object of App Mesh.
func TestComplaint2NamesThatAreMangledIntoOneHaveOneOwner(t *testing.T) {
	t.Parallel()
	const node = `
apiVersion: appmesh.k8s.aws/v1beta1
kind: VirtualNode
metadata: {name: NAME, namespace: SHOP}
spec:
  meshName: SHOP
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostName: my-node.SHOP.svc.cluster.local}}
`
	s := shop(t, "mangled", shopMesh, shopService)
	s.apply("mangled", replace(node, "NAME", "my-node"))
	s.condition("virtualnode/my-node", "mangled", "Accepted", "True", "")
	time.Sleep(time.Second) // creation times are whole seconds
	s.run("kubectl apply -f - 2>&1", in("mangled", replace(node, "NAME", "my-node.mangled"))).says("created", "Warning:", "my-node-mangled")
	s.condition("virtualnode/my-node.mangled", "mangled", "Accepted", "False", "Conflicted")
	s.run("kubectl -n mangled delete virtualnode my-node --timeout=30s")
	s.condition("virtualnode/my-node.mangled", "mangled", "Accepted", "True", "")
	// In the second version nothing is mangled: the separator is none that a name of Kubernetes can hold.
	s.run("kubectl -n mangled get virtualnode api -o jsonpath='{.spec.awsName}'").is("api_mangled")
}

// Third: what a reference means depended on whether a name has a dot in it.
func TestComplaint3ReferencesSayWhatTheyMean(t *testing.T) {
	t.Parallel()
	s := shop(t, "refs", shopMesh, shopService, shopApps)
	s.applied(in("refs-b", `
apiVersion: v1
kind: Namespace
metadata: {name: SHOP, labels: {mesh: refs, appmesh.k8s.aws/sidecarInjectorWebhook: enabled}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: caller, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: web}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: web.SHOP.svc.cluster.local}}
  backends:
    - virtualService: {virtualServiceRef: {name: api, namespace: refs}}
    - virtualService: {virtualServiceRef: {name: nobody, namespace: refs}}
---
apiVersion: v1
kind: Service
metadata: {name: web, namespace: SHOP}
spec: {selector: {app: web}, ports: [{port: 8080}]}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: SHOP}
spec:
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: app, image: "tulle-e2e/client:v1"}]}
`))
	if message := s.condition("virtualnode/caller", "refs-b", "ResolvedRefs", "False", "RefNotFound"); lacks("the condition", message, []string{`"nobody" in namespace "refs"`}) != nil {
		t.Errorf("the message does not name what is missing: %s", message)
	}
	s.podsReady("refs-b", "app=web", "2/2", 1)
	s.podsReady("refs", "app=api", "2/2", 1)
	// A reference to another namespace of the mesh is followed; one that leads nowhere takes nothing else along.
	s.soon(`kubectl -n refs-b exec deploy/web -c app -- curl -s -m 10 -w ' %{http_code}' http://api.refs.svc.cluster.local:8080/`, "api 200")
	s.run(`kubectl -n refs-b patch virtualnode caller --type=json -p '[{"op": "remove", "path": "/spec/backends/1"}]'`)
	s.condition("virtualnode/caller", "refs-b", "ResolvedRefs", "True", "")
	// A target of the first version may be named in each of the ways that worked or were expected to.
	for _, name := range []string{"old", "old.refs", "old-refs"} {
		s.apply("refs", replace(`
apiVersion: appmesh.k8s.aws/v1beta1
kind: VirtualNode
metadata: {name: old, namespace: SHOP}
spec:
  meshName: SHOP
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostName: api.SHOP.svc.cluster.local}}
---
apiVersion: appmesh.k8s.aws/v1beta1
kind: VirtualService
metadata: {name: old.SHOP.svc.cluster.local, namespace: SHOP}
spec:
  meshName: SHOP
  routes:
    - name: all
      http: {match: {prefix: /}, action: {weightedTargets: [{virtualNodeName: TARGET, weight: 1}]}}
`, "TARGET", name))
		s.condition("virtualservice/old.refs.svc.cluster.local", "refs", "ResolvedRefs", "True", "")
	}
}

// Fourth: which pods are a node's hung on the name of their Deployment.
func TestComplaint4ANodeSelectsItsPodsWhoeverMadeThem(t *testing.T) {
	t.Parallel()
	s := shop(t, "pods", shopMesh, shopService, shopApps)
	s.shopOpens("pods")
	s.apply("pods", `
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: of-any-name, namespace: SHOP}
spec:
  serviceName: api
  selector: {matchLabels: {app: api, made-by: statefulset}}
  template:
    metadata: {labels: {app: api, made-by: statefulset}}
    spec: {containers: [{name: app, image: "tulle-e2e/color:v1", env: [{name: COLOR, value: statefulset}]}]}
---
apiVersion: v1
kind: Pod
metadata: {name: alone, namespace: SHOP, labels: {app: api, made-by: hand}}
spec: {containers: [{name: app, image: "tulle-e2e/color:v1", env: [{name: COLOR, value: hand}]}]}
`)
	s.podsReady("pods", "app=api", "2/2", 3)
	const ask = `kubectl -n pods exec deploy/web -c app -- curl -s -m 10 -w '\n' "http://api.pods.svc.cluster.local:8080/?[1-100]" | sort | uniq -c`
	s.soon(ask, " api", " statefulset", " hand")
}

// Fifth: a virtual service always needed a router of its own.
func TestComplaint5AServiceNeedsNoRouterAndARouterServesMany(t *testing.T) {
	t.Parallel()
	s := shop(t, "routers", shopMesh, shopService, shopApps)
	s.shopOpens("routers") // shopService points at a node
	s.apply("routers", `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualRouter
metadata: {name: shared, namespace: SHOP}
spec:
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  routes: [{name: all, httpRoute: {match: {prefix: /}, action: {weightedTargets: [{virtualNodeRef: {name: api}, weight: 1}]}}}]
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: short, namespace: SHOP}
spec: {awsName: store.SHOP, provider: {virtualRouter: {virtualRouterRef: {name: shared}}}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: long, namespace: SHOP}
spec: {awsName: store.SHOP.svc.cluster.local, provider: {virtualRouter: {virtualRouterRef: {name: shared}}}}
---
apiVersion: v1
kind: Service
metadata: {name: store, namespace: SHOP}
spec: {ports: [{port: 8080}]}
`)
	s.run(`kubectl -n routers patch virtualnode web --type=merge -p '{"spec": {"backends": [{"virtualService": {"virtualServiceRef": {"name": "short"}}}, {"virtualService": {"virtualServiceRef": {"name": "long"}}}]}}'`)
	// The Service "store" has no pods: both answers are Envoy's doing.
	for _, name := range []string{"store.routers", "store.routers.svc.cluster.local"} {
		s.soon("kubectl -n routers exec deploy/web -c app -- curl -s -m 10 -w ' %{http_code}' http://"+name+":8080/", "api 200")
	}
	s.condition("virtualservice/long", "routers", "Programmed", "True", "")
	s.condition("virtualservice/short", "routers", "Programmed", "True", "")
}

// Sixth: the injector had one mesh for the whole cluster in its environment.
func TestComplaint6TheMeshOfAPodIsThatOfItsNamespace(t *testing.T) {
	t.Parallel()
	one := shop(t, "mesh-one", shopMesh, shopService, shopApps)
	other := shop(t, "mesh-other", shopMesh, shopService, shopApps)
	for namespace, s := range map[string]*shell{"mesh-one": one, "mesh-other": other} {
		s.shopOpens(namespace)
		s.run(`kubectl -n $NS get pod -l app=api -o json | jq -r '.items[0].spec | (.initContainers + .containers)[] | select(.name == "envoy") | .env[] | select(.name == "APPMESH_VIRTUAL_NODE_NAME") | .value'`).is("mesh/" + namespace + "/virtualNode/api_" + namespace)
	}
}
