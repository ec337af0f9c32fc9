// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"testing"
)

// The cases are those that users of App Mesh reported against its controller and its injector; each names the report.

// aws/aws-app-mesh-controller-for-k8s#529: refused, "expecting 1 but found 0".
func TestAGatewayWithoutNamespaceSelectorBindsRoutesOfItsOwnNamespace(t *testing.T) {
	t.Parallel()
	s := shop(t, "a1", shopMesh, shopService)
	s.apply("a1", `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualGateway
metadata: {name: front2, namespace: SHOP}
spec:
  gatewayRouteSelector: {matchLabels: {via: front2}}
  podSelector: {matchLabels: {app: front2}}
  listeners: [{portMapping: {port: 8088, protocol: http}}]
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: GatewayRoute
metadata: {name: r1, namespace: SHOP, labels: {via: front2}}
spec:
  httpRoute:
    match: {prefix: /}
    action: {target: {virtualService: {virtualServiceRef: {name: api}}}}
`).says("gatewayroute.appmesh.k8s.aws/r1 created")
	s.condition("gatewayroute/r1", "a1", "Accepted", "True", "")
	s.condition("gatewayroute/r1", "a1", "ResolvedRefs", "True", "")
	s.run("kubectl -n a1 get gatewayroute r1 -o jsonpath='{.status.gatewayRouteARN}'").says("virtualGateway/front2_a1/gatewayRoute/r1_a1")
	s.condition("virtualgateway/front2", "a1", "Programmed", "False", "NotYetSupported")
}

// aws/aws-app-mesh-controller-for-k8s#712: a prefix had to end in a slash.
func TestAGatewayRoutesPrefixNeedsNoSlashAtItsEnd(t *testing.T) {
	t.Parallel()
	s := shop(t, "a3", shopMesh, shopService, shopGateway)
	s.apply("a3", `
apiVersion: appmesh.k8s.aws/v1beta2
kind: GatewayRoute
metadata: {name: r-noslash, namespace: SHOP}
spec:
  httpRoute:
    match: {prefix: /api}
    action:
      target: {virtualService: {virtualServiceRef: {name: api}}}
      rewrite: {prefix: {defaultPrefix: DISABLED}}
`).says("r-noslash created")
	s.condition("gatewayroute/r-noslash", "a3", "Accepted", "True", "")
	s.condition("gatewayroute/r-noslash", "a3", "Programmed", "False", "NotYetSupported")
}

// aws/aws-app-mesh-controller-for-k8s#710 and #715: "Route must define a port match criteria".
func TestARouterHasSeveralListeners(t *testing.T) {
	t.Parallel()
	s := shop(t, "a5", shopMesh, shopService, shopApps)
	s.apply("a5", `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualRouter
metadata: {name: multi, namespace: SHOP}
spec:
  listeners:
    - portMapping: {port: 8080, protocol: http}
    - portMapping: {port: 9090, protocol: grpc}
  routes:
    - name: h
      httpRoute:
        match: {prefix: /, port: 8080}
        action: {weightedTargets: [{virtualNodeRef: {name: api}, weight: 1, port: 8080}]}
    - name: g
      grpcRoute:
        match: {port: 9090}
        action: {weightedTargets: [{virtualNodeRef: {name: apigrpc}, weight: 1, port: 9090}]}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: apigrpc, namespace: SHOP}
spec:
  listeners: [{portMapping: {port: 9090, protocol: grpc}}]
  serviceDiscovery: {dns: {hostname: apigrpc.SHOP.svc.cluster.local}}
---
apiVersion: v1
kind: Service
metadata: {name: apigrpc, namespace: SHOP}
spec: {selector: {app: apigrpc}, ports: [{port: 9090}]}
---
apiVersion: v1
kind: Pod
metadata: {name: apigrpc, namespace: SHOP, labels: {app: apigrpc}, annotations: {appmesh.k8s.aws/sidecarInjectorWebhook: disabled}}
spec: {containers: [{name: app, image: "example/howto-k8s-grpc-color_server:latest", env: [{name: PORT, value: "9090"}, {name: COLOR, value: grey}]}]}
`)
	s.condition("virtualrouter/multi", "a5", "Programmed", "True", "")
	s.run(`kubectl -n a5 patch virtualservice api --type=merge -p '{"spec": {"provider": {"virtualNode": null, "virtualRouter": {"virtualRouterRef": {"name": "multi"}}}}}'`)
	s.shopOpens("a5")
	s.soon(`kubectl -n a5 exec deploy/web -c envoy -- curl -s 'http://localhost:9901/config_dump?resource=dynamic_route_configs'`, "cds_egress_a5_api_a5_http_8080", "cds_egress_a5_apigrpc_a5_grpc_9090")
}

// aws/aws-app-mesh-controller-for-k8s#661: ignored.
func TestTheLogLevelOfASidecarIsWhatItsAnnotationSays(t *testing.T) {
	t.Parallel()
	s := shop(t, "a6", shopMesh, shopService)
	s.apply("a6", `
apiVersion: v1
kind: Pod
metadata:
  name: api-debug
  namespace: SHOP
  labels: {app: api}
  annotations: {appmesh.k8s.aws/sidecarEnv: "ENVOY_LOG_LEVEL=debug"}
spec:
  containers: [{name: app, image: "tulle-e2e/color:v1"}]
`)
	s.podsReady("a6", "app=api", "2/2", 1)
	s.run(`kubectl -n a6 get pod api-debug -o json | jq -r '.spec | (.initContainers + .containers)[] | select(.name == "envoy") | .env[] | select(.name == "ENVOY_LOG_LEVEL") | .value'`).is("debug")
	s.run(`kubectl -n a6 exec api-debug -c envoy -- curl -s -X POST http://localhost:9901/logging`).says("upstream: debug")
}

// aws/aws-app-mesh-controller-for-k8s#774: restartPolicy was gone, and the pod hung.
func TestAUsersNativeSidecarStaysOne(t *testing.T) {
	t.Parallel()
	s := shop(t, "a7", shopMesh, shopService)
	s.apply("a7", `
apiVersion: v1
kind: Pod
metadata: {name: api-ns, namespace: SHOP, labels: {app: api}}
spec:
  initContainers:
    - name: helper
      image: tulle-e2e/client:v1
      restartPolicy: Always
  containers: [{name: app, image: "tulle-e2e/color:v1"}]
`)
	s.podsReady("a7", "app=api", "3/3", 1)
	s.run(`kubectl -n a7 get pod api-ns -o jsonpath='{.spec.initContainers[?(@.name=="helper")].restartPolicy}'`).is("Always")
	s.run(`kubectl -n a7 get pod api-ns -o jsonpath='{.spec.initContainers[*].name}'`).is("proxyinit envoy helper")
}

// aws/aws-app-mesh-controller-for-k8s#777: a Job never completed.
func TestAJobEndsAndItsCallGoesThroughEnvoy(t *testing.T) {
	t.Parallel()
	s := shop(t, "a8", shopMesh, shopService, shopApps)
	s.podsReady("a8", "app=api", "2/2", 1)
	s.apply("a8", `
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: SHOP}
spec:
  backoffLimit: 2
  template:
    metadata: {labels: {app: web}}
    spec:
      restartPolicy: Never
      containers: [{name: app, image: "tulle-e2e/color:v1", command: [curl, -sfi, "http://api.SHOP.svc.cluster.local:8080/"]}]
`)
	s.run("kubectl -n a8 wait --for=condition=Complete job/once --timeout=90s")
	s.run("kubectl -n a8 logs job/once -c app").says("server: envoy", "api")
}

// aws/aws-app-mesh-controller-for-k8s#350: a second Envoy.
func TestAGatewaysPodWhoseContainerIsCalledOtherwiseIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	s := shop(t, "a9", shopMesh, shopService, shopGateway)
	s.refused("kubectl apply -f -", in("a9", `
apiVersion: v1
kind: Pod
metadata: {name: front-0, namespace: SHOP, labels: {app: front}}
spec:
  containers: [{name: proxy, image: registry.example/envoy}]
`)).says("envoy", "front")
}

// aws/aws-app-mesh-controller-for-k8s#259: the node was not made.
func TestANodeWhoseBackendComesLaterWorksWithoutItUntilThen(t *testing.T) {
	t.Parallel()
	s := shop(t, "a11", shopMesh, shopApps)
	if message := s.condition("virtualnode/web", "a11", "ResolvedRefs", "False", "RefNotFound"); lacks("the condition", message, []string{"api"}) != nil {
		t.Errorf("the message does not name what is missing: %s", message)
	}
	s.podsReady("a11", "app=web", "2/2", 1)
	s.podsReady("a11", "app=api", "2/2", 1)
	s.apply("a11", shopService)
	s.condition("virtualnode/web", "a11", "ResolvedRefs", "True", "")
	s.condition("virtualnode/web", "a11", "Programmed", "True", "")
	s.soon(`kubectl -n a11 exec deploy/web -c envoy -- curl -s http://localhost:9901/clusters`, "cds_egress_a11_api_a11_http_8080::")
	s.soon(askAPI, "api 200")
}

// aws/aws-app-mesh-roadmap#170: silently made one.
func TestABackendThatIsListedTwiceIsRefused(t *testing.T) {
	t.Parallel()
	s := shop(t, "a12", shopMesh, shopService)
	s.refused("kubectl apply -f -", in("a12", `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: dup, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: dup}}
  backends:
    - virtualService: {virtualServiceRef: {name: api}}
    - virtualService: {virtualServiceRef: {name: api}}
`)).says("spec.backends", "api")
}

// aws/aws-app-mesh-controller-for-k8s#397: the controller crashed for ever. Here a node of either mesh is found by its own pods, so both work.
func TestOneCloudMapServiceInTwoMeshes(t *testing.T) {
	t.Parallel()
	const node = `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: cm, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: cm}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {awsCloudMap: {namespaceName: corp.local, serviceName: api}}
`
	first := shop(t, "a14", shopMesh, shopService, node)
	second := shop(t, "a14-other", shopMesh, shopService, node)
	first.condition("virtualnode/cm", "a14", "Programmed", "True", "")
	second.condition("virtualnode/cm", "a14-other", "Programmed", "True", "")
	first.run("kubectl -n appmesh-system get pods -l app.kubernetes.io/name=appmesh-controller -o jsonpath='{.items[*].status.containerStatuses[*].restartCount}'").is("0")
}

// aws/aws-app-mesh-controller-for-k8s#146: the controller wrote back and forth without end.
func TestServicesOfOneNameInTwoNamespacesAreTwo(t *testing.T) {
	t.Parallel()
	const service = `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: both, namespace: SHOP}
spec:
  provider: {virtualNode: {virtualNodeRef: {name: api}}}
`
	s := shop(t, "a17", shopMesh, shopService, service)
	s.applied(in("a17-other", `
apiVersion: v1
kind: Namespace
metadata: {name: SHOP, labels: {mesh: a17}}
---
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: api, namespace: SHOP}
spec:
  podSelector: {matchLabels: {app: api}}
  listeners: [{portMapping: {port: 8080, protocol: http}}]
  serviceDiscovery: {dns: {hostname: api.SHOP.svc.cluster.local}}
---`+service))
	for _, namespace := range []string{"a17", "a17-other"} {
		s.condition("virtualservice/both", namespace, "Accepted", "True", "")
		s.run("kubectl -n "+namespace+" get virtualservice both -o jsonpath='{.spec.awsName} {.status.virtualServiceARN}'").says("both."+namespace, "mesh/a17/virtualService/both."+namespace)
	}
	// No loop: TestNothingIsWrittenAtRest looks at it for a minute.
}
