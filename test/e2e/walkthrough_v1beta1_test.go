// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"strconv"
	"strings"
	"testing"
)

// What the DJ app's containers answer, in both versions of its walkthrough.
const (
	jazzV1  = `["Astrud Gilberto","Miles Davis"]`
	jazzV2  = `["Astrud Gilberto (Bahia, Brazil)","Miles Davis (Alton, Illinois)"]`
	metalV1 = `["Megadeth","Judas Priest"]`
	metalV2 = `["Megadeth (Los Angeles, California)","Judas Priest (West Bromwich, England)"]`

	prettyJazz  = "[\n   \"Astrud Gilberto\",\n   \"Miles Davis\"\n]"
	prettyMetal = "[\n   \"Megadeth\",\n   \"Judas Priest\"\n]"
)

// exportPod and intoPod are printed in both walkthroughs; intoPod with the "--" that kubectl asks for by now.
const (
	exportPod = `export DJ_POD_NAME=$(kubectl get pods -n prod -l app=dj -o jsonpath='{.items[].metadata.name}')`
	intoPod   = `kubectl -n prod exec -it ${DJ_POD_NAME} -c dj -- bash`
)

// TestTheWalkthroughInV1beta1 types the hands-on for v1beta1, step by step.
func TestTheWalkthroughInV1beta1(t *testing.T) {
	absent(t)
	touched(t)
	s := terminal(t, "examples/djapp")

	t.Log("the DJ app")
	s.run(`kubectl apply -n prod -f 01-1_prod_ns.yaml`).says("namespace/prod created")
	s.run(`kubectl apply -n prod -f 02-1_initial_architecture_deployment.yaml`)
	s.run(`kubectl apply -n prod -f 03-1_initial_architecture_services.yaml`)
	s.podsReady("prod", "", "1/1", 3)
	s.run(`kubectl -n prod get pods,deploy,service`).says("deployment.apps/dj 1/1 1 1", "deployment.apps/jazz-v1 1/1 1 1", "deployment.apps/metal-v1 1/1 1 1", "service/dj ClusterIP", "9080/TCP")
	s.run(exportPod)
	const intoBarePod = `kubectl exec -n prod -it ${DJ_POD_NAME} -- bash`
	s.run(intoBarePod, "curl -s jazz-v1:9080 | json_pp", "exit").is(prettyJazz)
	s.run(intoBarePod, "curl -s metal-v1:9080 | json_pp", "exit").is(prettyMetal)
	s.run(`kubectl port-forward svc/dj -n prod 8888:9080 >/dev/null 2>&1 & curl -s -w '\n' --retry 20 --retry-delay 1 --retry-connrefused localhost:8888; kill $!`).is("DJ Reporting for duty!")

	t.Log("the charts")
	s.run(`helm version --short`).says("v3.")
	s.run(`helm repo add eks ` + here.charts)
	s.run(`helm repo list | grep eks`).says("eks " + here.charts)
	s.run(`helm search repo appmesh`).says("eks/appmesh-controller", "eks/appmesh-inject", "App Mesh")
	s.run(`kubectl create ns appmesh-system`)
	s.run(`kubectl apply -f ../../deploy/crds`)
	s.run(`kubectl get crd | grep appmesh`).says("meshes.appmesh.k8s.aws", "virtualnodes.appmesh.k8s.aws", "virtualservices.appmesh.k8s.aws",
		"virtualrouters.appmesh.k8s.aws", "virtualgateways.appmesh.k8s.aws", "gatewayroutes.appmesh.k8s.aws", "backendgroups.appmesh.k8s.aws")
	// One straight after the other, as a script does it.
	s.run(`
helm upgrade -i appmesh-controller eks/appmesh-controller \
  --namespace appmesh-system \
  --set region=ap-northeast-1 \
  --set serviceAccount.create=false \
  --set serviceAccount.name=appmesh-controller
export APPMESH_NAME="dj-app"
helm upgrade -i appmesh-inject eks/appmesh-inject \
  --namespace appmesh-system \
  --set mesh.name=${APPMESH_NAME} \
  --set mesh.create=true`)
	s.run(`k get sa -n appmesh-system`).says("appmesh-controller")
	s.soon(`kubectl -n appmesh-system get deploy,pods,service`, "deployment.apps/appmesh-controller 1/1 1 1", "deployment.apps/appmesh-inject 1/1 1 1",
		"pod/appmesh-controller-", "pod/appmesh-inject-", "service/appmesh-inject ClusterIP")
	s.soon(`k get mesh`, "NAME ARN AGE", "dj-app arn:aws:appmesh:ap-northeast-1:")
	s.run(`kubectl label namespace prod appmesh.k8s.aws/sidecarInjectorWebhook=enabled`).says("namespace/prod labeled")

	t.Log("virtual nodes and services")
	s.run(`kubectl create -f 11-nodes_representing_virtual_services.yaml`).says("virtualnode.appmesh.k8s.aws/metal created", "virtualnode.appmesh.k8s.aws/jazz created")
	s.run(`kubectl create -f 13-nodes_representing_physical_services.yaml`).says("dj created", "jazz-v1 created", "metal-v1 created")
	s.run(`k get virtualnode -n prod`).says("dj ", "jazz ", "jazz-v1 ", "metal ", "metal-v1 ")
	s.run(`kubectl apply -n prod -f 14-virtual-services.yaml`).says("jazz.prod.svc.cluster.local created", "metal.prod.svc.cluster.local created")
	s.run(`k get virtualservice -n prod`).says("jazz.prod.svc.cluster.local ", "metal.prod.svc.cluster.local ")
	s.run(`kubectl -n prod create -f 12-metal_and_jazz_placeholder_services.yaml`).says("service/jazz created", "service/metal created")
	s.run(`k get svc -n prod`).says("jazz ClusterIP", "metal ClusterIP")

	t.Log("sidecars")
	s.run(`k get po -n prod`).says("1/1").saysNot("2/2")
	s.run(`export TIMESTAMP=$(date +%s)
kubectl -n prod patch deployment dj \
  -p "{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"date\":\"${TIMESTAMP}\"}}}}}"
kubectl -n prod patch deployment metal-v1 \
 -p "{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"date\":\"${TIMESTAMP}\"}}}}}"
kubectl -n prod patch deployment jazz-v1 -nprod \
  -p "{\"spec\":{\"template\":{\"metadata\":{\"labels\":{\"date\":\"${TIMESTAMP}\"}}}}}"`).says("deployment.apps/dj patched", "deployment.apps/metal-v1 patched", "deployment.apps/jazz-v1 patched")
	s.podsReady("prod", "", "2/2", 3)
	s.run(exportPod)
	s.run(intoPod, "curl -s jazz.prod.svc.cluster.local:9080 | json_pp", "exit").is(prettyJazz)
	s.run(intoPod, "curl -s metal.prod.svc.cluster.local:9080 | json_pp", "exit").is(prettyMetal)
	s.run(intoPod, "curl -si jazz.prod.svc.cluster.local:9080").says("server: envoy", jazzV1)

	t.Log("canaries")
	s.run(`kubectl -n prod apply -f 15-jazz_v2.yaml`).says("deployment.apps/jazz-v2 created", "service/jazz-v2 created", "virtualnode.appmesh.k8s.aws/jazz-v2 created")
	s.run(`kubectl -n prod apply -f 16-jazz_service_update.yaml`).says("jazz.prod.svc.cluster.local configured")
	s.run(`k get virtualservice -n prod jazz.prod.svc.cluster.local -o json | jq '.spec.routes[].http.action'`).is(weights("jazz", 90, 10))
	s.run(`kubectl -n prod apply  -f 17-metal_v2.yaml`).says("deployment.apps/metal-v2 created", "service/metal-v2 created", "virtualnode.appmesh.k8s.aws/metal-v2 created")
	s.run(`kubectl -n prod apply -f 18-metal_service_update.yaml`).says("metal.prod.svc.cluster.local configured")
	s.run(`k get virtualservice -n prod metal.prod.svc.cluster.local -o json | jq '.spec.routes[].http.action'`).is(weights("metal", 50, 50))
	s.podsReady("prod", "", "2/2", 5)
	s.run(exportPod)
	s.split("metal", map[string]float64{metalV1: .5, metalV2: .5})
	s.split("jazz", map[string]float64{jazzV1: .9, jazzV2: .1})

	t.Log("what there is to look at")
	s.run(`kubectl describe virtualservice jazz.prod.svc.cluster.local -nprod`).says("Virtual Node Name: jazz-v2", "Weight: 10")
	s.run(`kubectl -n prod exec ${DJ_POD_NAME} -c envoy -- curl -s http://localhost:9901/clusters`).says("cds_egress_dj-app_jazz-v1-prod_http_9080::", "cds_egress_dj-app_metal-v2-prod_http_9080::")
	s.run(`kubectl get virtualnode dj -n prod -o jsonpath='{.status.virtualNodeARN}{.status.virtualNodeArn}'`).says("mesh/dj-app/virtualNode/dj-prod")

	t.Log("the end, in the order of the walkthrough")
	s.run(`kubectl delete namespace prod --timeout=120s`).says(`namespace "prod" deleted`)
	s.run(`kubectl delete meshes dj-app --timeout=30s`).says(`"dj-app" deleted`)
	s.run(`helm -n appmesh-system delete appmesh-inject`)
	s.run(`helm -n appmesh-system delete appmesh-controller`)
	nothingLeft(s)
	s.run(`kubectl delete -f ../../deploy/crds --timeout=60s`)
	s.run(`kubectl delete namespace appmesh-system --timeout=120s`)
}

// weights is what jq prints of a service's two targets.
func weights(service string, v1, v2 int) string {
	return strings.NewReplacer("SERVICE", service, "V1", strconv.Itoa(v1), "V2", strconv.Itoa(v2)).Replace(`{
  "weightedTargets": [
    {
      "virtualNodeName": "SERVICE-v1",
      "weight": V1
    },
    {
      "virtualNodeName": "SERVICE-v2",
      "weight": V2
    }
  ]
}`)
}

// nothingLeft fails the test for each thing that the charts leave in the cluster, once they are gone, beyond definitions and the namespace that the user made.
func nothingLeft(s *shell) {
	s.t.Helper()
	s.run(`kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations,clusterroles,clusterrolebindings -o name | { grep -i -e appmesh -e tulle || true; }`).is("")
	eventually(s.t, patience, func() error {
		out, err := s.try(`kubectl -n appmesh-system get all,secrets,configmaps,leases,serviceaccounts,roles,rolebindings,poddisruptionbudgets -o name | { grep -v -x -e configmap/kube-root-ca.crt -e serviceaccount/default || true; }`)
		if err != nil {
			return err
		}
		return empty("appmesh-system", out)
	})
}
