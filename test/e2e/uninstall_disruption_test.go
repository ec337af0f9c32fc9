// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// everything lists every object of the cluster by kind and name, but for what Kubernetes makes and drops by itself, as an APIService for each definition.
func (s *shell) everything() []string {
	s.t.Helper()
	text := s.run(`kubectl api-resources --verbs=list -o name | grep -v -e '^leases' -e '^events' -e '^componentstatuses$' -e metrics -e '^endpointslices' -e '^endpoints$' -e '^apiservices' | paste -sd, |
		xargs -I{} kubectl get {} -A --ignore-not-found -o jsonpath='{range .items[*]}{.kind} {.metadata.namespace}/{.metadata.name}{"\n"}{end}' | sort -u`)
	return text.lines()
}

// leftByCharts is what the two charts may leave: the definitions.
func leftByCharts(line string) bool {
	return strings.HasPrefix(line, "after: CustomResourceDefinition /") && strings.HasSuffix(line, ".appmesh.k8s.aws")
}

// uninstalled takes both charts away, in an order, and fails the test for anything that they leave. Objects of the mesh must all be as they were.
func (s *shell) uninstalled(before []string, objects int, releases ...string) {
	s.t.Helper()
	for _, release := range releases {
		s.run("helm -n appmesh-system uninstall " + release + " --wait --timeout 2m")
	}
	// Secrets and leases go with their Deployment, which the garbage collector sees to.
	eventually(s.t, time.Minute, func() error {
		var left []string
		mesh := 0
		for _, change := range changes(before, s.everything()) {
			switch {
			case leftByCharts(change):
			case meshObject(change):
				mesh++
			default:
				left = append(left, change)
			}
		}
		if mesh != objects {
			left = append(left, fmt.Sprintf("%d objects of the mesh; want %d", mesh, objects))
		}
		return empty("left behind", strings.Join(left, "\n"))
	})
	s.run("kubectl -n appmesh-system get leases -o name").is("")
}

// meshObject tells the users' objects.
func meshObject(change string) bool {
	for _, kind := range []string{"Mesh", "VirtualNode", "VirtualService", "VirtualRouter", "VirtualGateway", "GatewayRoute", "BackendGroup"} {
		if strings.HasPrefix(change, "after: "+kind+" ") {
			return true
		}
	}
	return false
}

const (
	installInjector = "helm upgrade -i appmesh-inject eks/appmesh-inject --namespace appmesh-system --set mesh.name=dj-app"
	controllerFirst = "appmesh-controller appmesh-inject"
	injectorFirst   = "appmesh-inject appmesh-controller"
)

// TestUninstallingLeavesNothingButDefinitionsAndObjects takes the charts away in either order, with objects left and without.
func TestUninstallingLeavesNothingButDefinitionsAndObjects(t *testing.T) {
	absentRest(t)
	absent(t)
	touched(t)
	s := terminal(t, ".")
	s.run("helm repo add eks " + here.charts + " --force-update")
	s.run("kubectl create ns appmesh-system")
	for _, order := range []string{controllerFirst, injectorFirst} {
		before := s.everything()
		s.run(install)
		s.run(installInjector)
		s.uninstalled(before, 0, strings.Fields(order)...)

		s.run("kubectl create ns stay && kubectl label ns stay mesh=stay") // in the list before, with what a namespace comes with
		s.run("until kubectl -n stay get sa default && kubectl -n stay get configmap kube-root-ca.crt; do sleep 0.5; done")
		before = s.everything()
		s.run(install)
		s.run(installInjector)
		_, objects, _ := strings.Cut(shopMesh, "---") // without the namespace
		s.apply("stay", objects+"---"+shopService)
		s.condition("virtualservice/api", "stay", "Programmed", "True", "")
		s.uninstalled(before, 4, strings.Fields(order)...)
		// They can be deleted without anybody.
		s.run("kubectl delete mesh stay --timeout=30s && kubectl delete ns stay --timeout=60s")
	}
}

// TestNamespaceMeshAndChartsGoInAnyOrder deletes the three in orders in which each comes first once: nothing hangs.
func TestNamespaceMeshAndChartsGoInAnyOrder(t *testing.T) {
	absentRest(t)
	touched(t)
	s := terminal(t, ".")
	s.run("export NS=anyhow")
	ways := map[string]string{
		"namespace": "kubectl delete ns anyhow --timeout=120s",
		"mesh":      "kubectl delete mesh anyhow --timeout=60s",
		"charts":    "helm -n appmesh-system uninstall appmesh-controller --wait --timeout 2m",
	}
	for _, order := range []string{"charts namespace mesh", "mesh charts namespace", "namespace mesh charts"} {
		t.Run(order, func(t *testing.T) {
			s := &shell{t: t, dir: s.dir, exports: s.exports}
			s.run("helm repo add eks " + here.charts + " --force-update && kubectl create ns appmesh-system --dry-run=client -o yaml | kubectl apply -f -")
			s.run(install)
			s.apply("anyhow", strings.Join([]string{shopMesh, shopService, shopGateway, shopApps, oldNode}, "\n---\n"))
			s.shopOpens("anyhow")
			for step := range strings.FieldsSeq(order) {
				s.run(ways[step])
			}
		})
	}
}
