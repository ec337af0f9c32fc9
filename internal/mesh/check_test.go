// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"testing"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

func TestCheckNeedsNoProxyThatUsesTheObject(t *testing.T) {
	t.Parallel()
	gatewayRoute := &mesh.GatewayRoute{Meta: meta("GatewayRoute", "gr"), GatewayName: "gone", Spec: mesh.GatewayRouteSpec{
		GRPCRoute: &mesh.GRPCGatewayRoute{Action: mesh.GRPCGatewayRouteAction{Target: mesh.GatewayRouteTarget{VirtualService: mesh.GatewayRouteVirtualService{VirtualServiceName: "gone"}}}},
	}}
	m := newModel(
		aMesh(), aService("lost", byNode("gone")), aService("sound", byNode("a")), aNode("a", "http/80"), dnsNode("x.prod.svc.cluster.local", "http/80"), aClient("c", "gone"),
		aRouter("r", "http/80"), httpRoute("r", "x", "/", "gone=1"), httpRoute("gone", "orphan", "/", "a=1"), gatewayRoute,
		&mesh.VirtualGateway{Meta: meta("VirtualGateway", "g")},
	)
	m = m.with(aNode("a", "http/80"))
	missing := dnsNode("x.prod.svc.cluster.local", "http/80")
	missing.Meta = meta("VirtualNode", "missing")
	m = m.with(missing)
	const target = "VirtualRouter/r spec.routes[0].httpRoute.action.weightedTargets"
	for name, c := range map[string]struct {
		model model
		key   mesh.Key
		want  []string
	}{
		"a service whose provider is missing":   {m, mesh.VirtualServiceKey("m", "lost"), []string{"error RefNotFound VirtualService/lost spec.provider.virtualNode.virtualNodeName"}},
		"a sound service":                       {m, mesh.VirtualServiceKey("m", "sound"), nil},
		"a router with a route to nowhere":      {m, mesh.RouterKey("m", "r"), []string{"error RefNotFound " + target + "[0].virtualNode", "warning NoTraffic " + target}},
		"a route whose router is missing":       {m, mesh.RouteKey("m", "gone", "orphan"), []string{"error RefNotFound VirtualRouter/gone virtualRouterName"}},
		"a node whose Service is missing":       {m, mesh.NodeKey("m", "missing"), []string{"error RefNotFound VirtualNode/missing spec.serviceDiscovery.dns.hostname"}},
		"a node with a backend that is missing": {m, mesh.NodeKey("m", "c"), []string{"error RefNotFound VirtualNode/c spec.backends[0].virtualService.virtualServiceName"}},
		"a sound node":                          {m, mesh.NodeKey("m", "a"), nil},
		"a gateway":                             {m, mesh.GatewayKey("m", "g"), []string{"error NotYetSupported VirtualGateway/g spec.listeners"}},
		"a gateway route to nowhere": {m, mesh.GatewayRouteKey("m", "gone", "gr"), []string{
			"error NotYetSupported GatewayRoute/gr spec", "error RefNotFound GatewayRoute/gr spec.grpcRoute.action.target.virtualService.virtualServiceName",
			"error RefNotFound GatewayRoute/gr virtualGatewayName",
		}},
		"an object without its mesh":    {m.without(mesh.MeshKey("m")), mesh.VirtualServiceKey("m", "sound"), []string{"error RefNotFound VirtualService/sound meshName"}},
		"a node without its mesh":       {m.without(mesh.MeshKey("m")), mesh.NodeKey("m", "a"), []string{"error RefNotFound VirtualNode/a spec.meshName"}},
		"a mesh":                        {m, mesh.MeshKey("m"), nil},
		"an object that does not exist": {m, mesh.NodeKey("m", "nobody"), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantFindings(t, mesh.Check(c.model, c.key), c.want...)
		})
	}
}
