// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

const stored = "appmesh.k8s.aws/v1beta2"

// faultsOf lists "severity field" of what is wrong with an object whose spec is given in YAML.
func faultsOf(t *testing.T, kind, spec string) []string {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte("metadata: {name: o, namespace: shop}\nspec:\n  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ")))
	if err != nil {
		t.Fatal(err)
	}
	s, err := read(kind, raw)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, f := range Faults(s.object, stored, "") {
		if f.Message == "" || f.Mend == "" {
			t.Errorf("a fault without a message or a way to mend it: %+v", f)
		}
		list = append(list, string(f.Severity)+" "+f.Field)
	}
	return slices.Compact(list)
}

const gatewayTarget = "action: {target: {virtualService: {virtualServiceRef: {name: later}}}}"

func TestFaultsOfAnObjectByItself(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		kind, spec string
		want       []string
	}{
		"a mesh with a preference of both families": {kindMesh, "meshServiceDiscovery: {ipPreference: IPv5_ONLY}", []string{"error spec.meshServiceDiscovery.ipPreference"}},
		"a mesh without anything":                   {kindMesh, "namespaceSelector: {}", nil},
		"a node with a listener and neither pods nor a host": {
			kindVirtualNode, "listeners: [{portMapping: {port: 1, protocol: tcp}}]", []string{"error spec.serviceDiscovery"},
		},
		"a node with a listener and pods": {kindVirtualNode, "podSelector: {}\nlisteners: [{portMapping: {port: 1, protocol: tcp}}]", nil},
		"a backend twice": {
			kindVirtualNode, "backends: [{virtualService: {virtualServiceRef: {name: a}}}, {virtualService: {virtualServiceRef: {name: a, namespace: shop}}}]",
			[]string{"error spec.backends[1].virtualService.virtualServiceRef"},
		},
		"a backend by reference and by ARN": {
			kindVirtualNode,
			"meshRef: {name: m}\nbackends: [{virtualService: {virtualServiceRef: {name: a}}}, {virtualService: {virtualServiceARN: 'arn:aws:appmesh:eu-west-1:123456789012:mesh/m/virtualService/a.shop'}}]",
			[]string{"error spec.backends[1].virtualService.virtualServiceRef"},
		},
		"a backend that names nothing": {kindVirtualNode, "backends: [{virtualService: {}}]", []string{"error spec.backends[0].virtualService.virtualServiceRef"}},
		"an ARN of another kind": {
			kindVirtualNode, "backends: [{virtualService: {virtualServiceARN: 'arn:aws:appmesh:eu-west-1:123456789012:mesh/m/virtualNode/a'}}]",
			[]string{"error spec.backends[0].virtualService.virtualServiceARN"},
		},
		"a client policy of a backend that comes later": {
			kindVirtualNode, "backends: [{virtualService: {virtualServiceRef: {name: a}, clientPolicy: {tls: {ports: [0], validation: {trust: {}}}}}}]",
			[]string{
				"error spec.backends[0].virtualService.clientPolicy.tls.ports[0]",
				"error spec.backends[0].virtualService.clientPolicy.tls.validation.trust",
			},
		},
		"two connection pools of a node": {
			kindVirtualNode, "podSelector: {}\nlisteners: [{portMapping: {port: 1, protocol: http}, connectionPool: {http: {maxConnections: 1}, tcp: {maxConnections: 1}}}]",
			[]string{"error spec.listeners[0].connectionPool", "error spec.listeners[0].connectionPool.tcp"},
		},
		"two connection pools of a gateway": {
			kindVirtualGateway, "listeners: [{portMapping: {port: 1, protocol: http}, connectionPool: {http: {maxConnections: 1}, grpc: {maxRequests: 1}}}]",
			[]string{"error spec.listeners[0].connectionPool", "error spec.listeners[0].connectionPool.grpc"},
		},
		"two routes of one name": {
			kindVirtualRouter, "routes: [" + tcpRoute("r") + ", " + tcpRoute("r") + "]", []string{"error spec.routes[1].name"},
		},
		"targets that come later": {kindVirtualRouter, "routes: [" + tcpRoute("r") + "]", nil},
		"a weight of a target that comes later": {
			kindVirtualRouter, "routes: [{name: r, tcpRoute: {action: {weightedTargets: [{virtualNodeRef: {name: a}, weight: 1000}]}}}]",
			[]string{"error spec.routes[0].tcpRoute.action.weightedTargets", "error spec.routes[0].tcpRoute.action.weightedTargets[0].weight"},
		},
		"prefix and path of a route":      {kindVirtualRouter, httpRoute("{prefix: /, path: {exact: /a}}"), []string{"error spec.routes[0].httpRoute.match"}},
		"neither prefix nor path":         {kindVirtualRouter, httpRoute("{method: GET}"), []string{"error spec.routes[0].httpRoute.match"}},
		"exact and regex of a path":       {kindVirtualRouter, httpRoute("{path: {exact: /a, regex: /b}}"), []string{"error spec.routes[0].httpRoute.match.path"}},
		"neither exact nor regex":         {kindVirtualRouter, httpRoute("{path: {}}"), []string{"error spec.routes[0].httpRoute.match.path"}},
		"a route of two protocols":        {kindVirtualRouter, "routes: [{name: r, tcpRoute: {" + action + "}, grpcRoute: {match: {}, " + action + "}}]", []string{"error spec.routes[0]"}},
		"a gateway route of no protocol":  {kindGatewayRoute, "priority: 1", []string{"error spec"}},
		"a gateway route of two":          {kindGatewayRoute, gatewayHTTP("{prefix: /}", "") + "\ngrpcRoute: {match: {serviceName: s}, " + gatewayTarget + "}", []string{"error spec"}},
		"a gateway route without a match": {kindGatewayRoute, gatewayHTTP("{method: GET}", ""), []string{"error spec.httpRoute.match"}},
		"prefix and path at a gateway":    {kindGatewayRoute, gatewayHTTP("{prefix: /, path: {exact: /a}}", ""), []string{"error spec.httpRoute.match"}},
		"both ways to match a host":       {kindGatewayRoute, gatewayHTTP("{hostname: {exact: a, suffix: b}}", ""), []string{"error spec.httpRoute.match.hostname"}},
		"a header with two conditions":    {kindGatewayRoute, gatewayHTTP("{prefix: /, headers: [{name: h, match: {exact: a, prefix: b}}]}", ""), []string{"error spec.httpRoute.match.headers[0].match"}},
		"a header with none":              {kindGatewayRoute, gatewayHTTP("{prefix: /, headers: [{name: h, match: {}}]}", ""), []string{"error spec.httpRoute.match.headers[0].match"}},
		"a fault behind a header with a range": {
			kindGatewayRoute, gatewayHTTP("{prefix: /, headers: [{name: a, match: {range: {start: 1, end: 2}}}, {name: b, match: {range: {start: 2, end: 1}}}]}", ""),
			[]string{"error spec.httpRoute.match.headers[1].match.range"},
		},
		"a query parameter without a value, beside headers": {
			kindGatewayRoute, gatewayHTTP("{prefix: /, headers: [{name: a}], queryParameters: [{name: q, match: {}}]}", ""),
			[]string{"error spec.httpRoute.match.queryParameters[0].match.exact"},
		},
		"metadata with an empty match": {
			kindGatewayRoute, "grpcRoute: {match: {serviceName: s, metadata: [{name: k, match: {}}]}, " + gatewayTarget + "}",
			[]string{"error spec.grpcRoute.match.metadata[0].match"},
		},
		"a rewrite of nothing":         {kindGatewayRoute, gatewayHTTP("{prefix: /}", "{}"), []string{"error spec.httpRoute.action.rewrite"}},
		"a rewrite of prefix and path": {kindGatewayRoute, gatewayHTTP("{prefix: /}", "{prefix: {value: /a/}, path: {exact: /b}}"), []string{"error spec.httpRoute.action.rewrite", "error spec.httpRoute.action.rewrite.path"}},
		"a rewrite without slashes":    {kindGatewayRoute, gatewayHTTP("{prefix: /}", "{prefix: {value: a}}"), []string{"error spec.httpRoute.action.rewrite.prefix.value"}},
		"both ways to rewrite a prefix": {
			kindGatewayRoute, gatewayHTTP("{prefix: /}", "{prefix: {value: /a/, defaultPrefix: DISABLED}}"), []string{"error spec.httpRoute.action.rewrite.prefix"},
		},
		"gRPC without service and host": {kindGatewayRoute, "grpcRoute: {match: {}, " + gatewayTarget + "}", []string{"error spec.grpcRoute.match"}},
		"gRPC with a service and a host in two ways": {
			kindGatewayRoute, "grpcRoute: {match: {serviceName: s, hostname: {exact: a, suffix: b}}, " + gatewayTarget + "}", []string{"error spec.grpcRoute.match.hostname"},
		},
		"a provider of both kinds": {
			kindVirtualService, "provider: {virtualNode: {virtualNodeRef: {name: a}}, virtualRouter: {virtualRouterRef: {name: a}}}", []string{"error spec.provider"},
		},
		"a provider beside routes":    {kindVirtualService, "provider: {virtualNode: {virtualNodeRef: {name: a}}}\nroutes: [{name: r}]", []string{"error spec.provider"}},
		"a provider that comes later": {kindVirtualService, "provider: {virtualRouter: {virtualRouterRef: {name: a}}}", nil},
		"a name of 256 characters":    {kindVirtualService, "awsName: " + strings.Repeat("n", 256), []string{"error spec.awsName"}},
		"a selector with an operator of its own": {
			kindVirtualNode, "podSelector: {matchExpressions: [{key: a, operator: Like, values: [b]}]}", []string{"error spec.podSelector"},
		},
		"a group of services that come later": {kindBackendGroup, "virtualservices: [{name: a}]", nil},
		"groups that come later":              {kindVirtualNode, "backendGroups: [{name: a}, {name: '*'}]", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, faultsOf(t, tt.kind, tt.spec)); diff != "" {
				t.Errorf("faults differ (-want +got):\n%s", diff)
			}
		})
	}
}

const action = "action: {weightedTargets: [{virtualNodeRef: {name: later}, weight: 1}]}"

func tcpRoute(name string) string { return "{name: " + name + ", tcpRoute: {" + action + "}}" }

func httpRoute(match string) string {
	return "routes: [{name: r, httpRoute: {match: " + match + ", " + action + "}}]"
}

func gatewayHTTP(match, rewrite string) string {
	spec := "httpRoute: {match: " + match + ", " + gatewayTarget + "}"
	if rewrite != "" {
		spec = strings.Replace(spec, "action: {", "action: {rewrite: "+rewrite+", ", 1)
	}
	return spec
}

func TestFaultsSayFieldValueAndMendInOneSentence(t *testing.T) {
	t.Parallel()
	route := &v1beta2.GatewayRoute{}
	route.Name, route.Namespace = "r", "shop"
	route.Spec.HTTPRoute = &v1beta2.HTTPGatewayRoute{Match: v1beta2.HTTPGatewayRouteMatch{Prefix: new("jazz")}}
	route.Spec.HTTPRoute.Action.Target.VirtualService.VirtualServiceRef = &v1beta2.VirtualServiceReference{Name: "s"}
	var got []string
	for _, f := range Faults(route, stored, "") {
		got = append(got, sentence(f))
	}
	want := []string{`spec.httpRoute.match.prefix of gateway route "r_shop" does not begin with "/" (it is "jazz"); put "/" in front`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("sentences differ (-want +got):\n%s", diff)
	}
}

func TestManyFaultsAreCutToTen(t *testing.T) {
	t.Parallel()
	faults := make([]mesh.Finding, 0, 25)
	for range 25 {
		faults = append(faults, mesh.Finding{Severity: mesh.SeverityError, Message: "m"})
	}
	node := &v1beta2.VirtualNode{}
	s, _ := wrap(node)
	_, err := judge(s, faults, nil)
	if err == nil || strings.Count(err.Error(), "\n- ") != 11 || !strings.HasSuffix(err.Error(), "and 15 more") {
		t.Errorf("got %v", err)
	}
}
