// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"testing"
)

// A sidecarMode is how pods carry Envoy, and what the walkthrough sees of it.
type sidecarMode struct {
	// values are for Helm.
	values string
	// containers are the names in spec.containers, sidecars those in spec.initContainers.
	containers, sidecars string
}

// TestTheWalkthroughInV1beta2 types the workshop for v1beta2, step by step, with native sidecars, which are the default where the cluster has them.
func TestTheWalkthroughInV1beta2(t *testing.T) {
	walkV1beta2(t, sidecarMode{containers: "dj", sidecars: "proxyinit envoy"})
}

// TestTheWalkthroughInV1beta2WithClassicSidecars does so with a sidecar that is a container like the others, as it was.
func TestTheWalkthroughInV1beta2WithClassicSidecars(t *testing.T) {
	walkV1beta2(t, sidecarMode{values: "--set sidecar.mode=classic", containers: "dj envoy", sidecars: "proxyinit"})
}

func walkV1beta2(t *testing.T, mode sidecarMode) {
	t.Helper()
	absent(t)
	touched(t)
	s := terminal(t, "examples/djapp-v1beta2")

	t.Log("the app")
	if created := s.run(`kubectl apply -f 01-base_app.yaml`).says("namespace/prod created", "deployment.apps/dj created", "service/metal-v1 created"); len(created.lines()) != 7 {
		t.Errorf("want 7 objects: %s", created.text)
	}
	s.podsReady("prod", "", "1/1", 3)
	s.run(`kubectl -n prod get all`).says("1/1")
	s.run(exportPod)
	s.run(`kubectl exec -n prod -it ${DJ_POD_NAME} -- bash`, "curl -s jazz-v1:9080 | json_pp", "exit").is(prettyJazz)
	s.run(`kubectl exec -n prod -it ${DJ_POD_NAME} -- bash`, "curl -s metal-v1:9080 | json_pp", "exit").is(prettyMetal)

	t.Log("the controller")
	s.run(`export AWS_REGION=us-west-2`)
	s.run(`helm repo add eks ` + here.charts + ` --force-update`)
	s.run(`kubectl create ns appmesh-system`)
	s.run(`helm upgrade -i appmesh-controller eks/appmesh-controller --namespace appmesh-system --set region=${AWS_REGION} --set serviceAccount.create=false --set serviceAccount.name=appmesh-controller ` + mode.values)
	s.soon(`kubectl -n appmesh-system get all`, "deployment.apps/appmesh-controller 1/1", "service/appmesh-controller-webhook-service ClusterIP", "443/TCP")
	s.run(`kubectl get crds | grep appmesh`).says("gatewayroutes.appmesh.k8s.aws", "meshes.appmesh.k8s.aws", "virtualgateways.appmesh.k8s.aws",
		"virtualnodes.appmesh.k8s.aws", "virtualrouters.appmesh.k8s.aws", "virtualservices.appmesh.k8s.aws")
	// The gate of the examples' own scripts.
	s.run(`kubectl get deployment -n appmesh-system appmesh-controller -o json | jq -r ".spec.template.spec.containers[].image" | cut -f2 -d ':' | tail -n1 | cat <(echo v1.7.0) - | sort -V -C && echo "new enough"`).is("new enough")

	t.Log("the mesh")
	s.run(`kubectl apply -f 02-meshed_app.yaml`).says("namespace/prod configured", "mesh.appmesh.k8s.aws/dj-app created",
		"virtualnode.appmesh.k8s.aws/dj created", "virtualnode.appmesh.k8s.aws/jazz-v1 created", "virtualnode.appmesh.k8s.aws/metal-v1 created",
		"virtualservice.appmesh.k8s.aws/jazz created", "virtualservice.appmesh.k8s.aws/metal created",
		"virtualrouter.appmesh.k8s.aws/jazz-router created", "virtualrouter.appmesh.k8s.aws/metal-router created", "service/jazz created", "service/metal created")
	s.soon(`kubectl get meshes`, "NAME ARN AGE", "dj-app arn:aws:appmesh:us-west-2:", ":mesh/dj-app ")
	s.soon(`kubectl get all -n prod`, "virtualnode.appmesh.k8s.aws/dj arn:aws:appmesh:us-west-2:", "mesh/dj-app/virtualNode/dj_prod",
		"mesh/dj-app/virtualService/jazz.prod.svc.cluster.local", "mesh/dj-app/virtualRouter/jazz-router_prod")
	s.soon(`kubectl get virtualservice jazz -n prod | sed -n 2p | awk '{print $2}'`, ":mesh/dj-app/virtualService/jazz.prod.svc.cluster.local")

	t.Log("sidecars")
	s.run(`kubectl -n prod get pods`).saysNot("2/2")
	s.run(`kubectl -n prod rollout restart deployment dj jazz-v1 metal-v1`).says("deployment.apps/dj restarted", "deployment.apps/jazz-v1 restarted", "deployment.apps/metal-v1 restarted")
	s.podsReady("prod", "", "2/2", 3)
	s.run(exportPod)
	s.run(`kubectl -n prod get pods $DJ_POD_NAME -o jsonpath='{.spec.containers[*].name}'`).is(mode.containers)
	s.run(`kubectl -n prod get pods $DJ_POD_NAME -o jsonpath='{.spec.initContainers[*].name}'`).is(mode.sidecars)
	s.run(intoPod, "curl -s jazz.prod.svc.cluster.local:9080 | json_pp", "exit").is(prettyJazz)
	s.run(intoPod, "curl -s metal.prod.svc.cluster.local:9080 | json_pp", "exit").is(prettyMetal)
	s.run(intoPod, "curl -si jazz.prod.svc.cluster.local:9080").says("server: envoy", jazzV1)

	t.Log("canaries of 95 and 5")
	s.run(`kubectl apply -f 03-v2_app.yaml`).says("virtualrouter.appmesh.k8s.aws/jazz-router configured", "virtualrouter.appmesh.k8s.aws/metal-router configured",
		"virtualnode.appmesh.k8s.aws/jazz-v2 created", "virtualnode.appmesh.k8s.aws/metal-v2 created", "deployment.apps/jazz-v2 created", "service/metal-v2 created")
	s.run(`kubectl -n prod get deployments,services,virtualnodes,virtualrouters`).says("deployment.apps/jazz-v2", "virtualnode.appmesh.k8s.aws/jazz-v2", "virtualrouter.appmesh.k8s.aws/jazz-router")
	s.run(`kubectl -n prod describe virtualrouters jazz-router`).says("Weight: 95", "Weight: 5")
	s.podsReady("prod", "", "2/2", 5)
	s.split("jazz", map[string]float64{jazzV1: .95, jazzV2: .05})

	t.Log("half and half")
	s.run(`kubectl apply -f 04-half.yaml`).says("virtualrouter.appmesh.k8s.aws/jazz-router configured", "virtualrouter.appmesh.k8s.aws/metal-router configured")
	s.split("metal", map[string]float64{metalV1: .5, metalV2: .5})
	s.split("jazz", map[string]float64{jazzV1: .5, jazzV2: .5})

	t.Log("the end, in the workshop's order")
	s.run(`kubectl delete namespace prod --timeout=120s`)
	s.run(`kubectl delete meshes dj-app --timeout=30s`)
	s.run(`helm -n appmesh-system delete appmesh-controller`)
	nothingLeft(s)
	s.run(`for i in $(kubectl get crd | grep appmesh | cut -d" " -f1) ; do kubectl delete crd $i --timeout=60s; done`)
	s.run(`kubectl delete namespace appmesh-system --timeout=120s`)
}
