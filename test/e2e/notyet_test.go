// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
)

// Of what the data plane does not do yet, the half that goes before: objects are admitted, pods get what they ask for, and a condition says what is not done.

// podEnvoy prints a field of a pod's Envoy, wherever it stands.
func (s *shell) podEnvoy(selector, field string) output {
	s.t.Helper()
	return s.run(`kubectl -n $NS get pod -l ` + selector + ` -o json | jq -r '.items[0].spec | ((.initContainers // []) + .containers)[] | select(.name == "envoy") | ` + field + `'`)
}

func TestGatewaysAreAdmittedAndTheirPodsGetAnAgent(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"howto-k8s-ingress-gateway", "howto-k8s-http-ingress-v2"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			installed(t)
			s := terminal(t, corpus+name)
			s.run("export NS=" + name)
			s.applied(corpus + name + "/01-manifest.yaml")
			s.podsReady(name, "app=color", "2/2", 5)
			if message := s.condition("virtualgateway/ingress-gw", name, "Programmed", "False", "NotYetSupported"); message == "" {
				t.Error("the condition has no message")
			}
			s.condition("virtualgateway/ingress-gw", name, "Accepted", "True", "")
			s.soon("kubectl -n "+name+" get virtualgateway ingress-gw --no-headers | awk '{print $2}'", ":mesh/"+name+"/virtualGateway/ingress-gw_"+name)
			// The image of the manifest is nobody's; the controller puts its own there.
			s.podEnvoy("app=ingress-gw", ".image").says("tulle-mesh/tulle-agent:v1.20.0")
			s.podEnvoy("app=ingress-gw", `.env[] | select(.name == "APPMESH_VIRTUAL_NODE_NAME") | .value`).is("mesh/" + name + "/virtualGateway/ingress-gw_" + name)
			s.run(`kubectl -n $NS get pod -l app=ingress-gw -o jsonpath='{.items[0].spec.containers[*].name}'`).is("envoy")
		})
	}
}

func TestGatewayRoutesOfEveryKindAreAdmitted(t *testing.T) {
	t.Parallel()
	s := shop(t, "gateway-routes", shopMesh, shopService, shopGateway)
	for name, route := range map[string]string{
		"prefix":   `httpRoute: {match: {prefix: /paths/red}, ACTION}`,
		"exact":    `{priority: 0, httpRoute: {match: {path: {exact: /paths/green}}, ACTION}}`,
		"header":   `httpRoute: {match: {prefix: /, headers: [{name: color_header, match: {exact: yellow}}]}, ACTION}`,
		"query":    `httpRoute: {match: {prefix: /query, queryParameters: [{name: color_type, match: {exact: white}}]}, ACTION}`,
		"method":   `httpRoute: {match: {prefix: /method, method: GET}, ACTION}`,
		"hostname": `httpRoute: {match: {hostname: {exact: api.example.com}}, ACTION}`,
	} {
		route = strings.ReplaceAll(route, "ACTION", "action: {target: {virtualService: {virtualServiceRef: {name: api}}}}")
		if !strings.HasPrefix(route, "{") {
			route = "{" + route + "}"
		}
		s.apply("gateway-routes", "apiVersion: appmesh.k8s.aws/v1beta2\nkind: GatewayRoute\nmetadata: {name: "+name+", namespace: SHOP}\nspec: "+route+"\n").says(name + " created")
		s.condition("gatewayroute/"+name, "gateway-routes", "Accepted", "True", "")
		s.condition("gatewayroute/"+name, "gateway-routes", "Programmed", "False", "NotYetSupported")
	}
}

func TestEncryptionThatIsAskedForIsNeverLeftOutInSilence(t *testing.T) {
	t.Parallel()
	const name = "howto-k8s-tls-file-based"
	installed(t)
	s := terminal(t, corpus+name)
	s.run("export NS=" + name)
	// The walkthrough makes the certificates with a script; what is in them does not matter here.
	s.run("kubectl create ns $NS")
	for _, secret := range []string{"ca1-cert-tls", "colorapp-blue-tls", "colorapp-green-tls", "colorapp-red-tls"} {
		s.run("kubectl -n $NS create secret generic " + secret + " --from-literal=" + secret + ".pem=certificate")
	}
	s.applied(corpus + name + "/01-manifest.yaml")
	s.condition("virtualnode/blue", name, "Programmed", "False", "NotYetSupported")
	s.condition("virtualnode/front", name, "Programmed", "False", "NotYetSupported")
	s.condition("virtualnode/blue", name, "Accepted", "True", "")
	// The mount of the annotation is there.
	s.soon(`kubectl -n $NS exec deploy/blue -c envoy -- ls /certs/`, "colorapp-blue-tls.pem")
	s.soon(`kubectl -n $NS exec deploy/front -c envoy -- ls /certs/`, "ca1-cert-tls.pem")
	// No request goes out in the clear.
	s.run(`kubectl -n $NS exec deploy/front -c app -- curl -s -m 5 -o /dev/null -w '%{http_code}' http://color.$NS.svc.cluster.local:8080/ || true`).saysNot("200")
}

// aws/aws-app-mesh-controller-for-k8s#448: every pod hung in ContainerCreating where SDS was on and no agent's socket was on the node.
func TestAPodThatUsesNoSDSCertificateRunsWhereTheSocketIsMissing(t *testing.T) {
	installed(t, "--set sds.enabled=true")
	s := shopWith(t, "a16", shopMesh, shopService, shopApps)
	s.run(`kubectl get deployment -n appmesh-system appmesh-controller -o json | jq -r '.spec.template.spec.containers[].args[]'`).says("--enable-sds=true")
	s.shopOpens("a16")
}
