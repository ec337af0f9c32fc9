// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"fmt"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

func (b *builder) routeSpec(field string, route *v1beta2.Route) mesh.RouteSpec {
	spec := mesh.RouteSpec{Priority: int32Ptr(route.Priority)}
	if route.HTTPRoute != nil {
		spec.HTTPRoute = b.httpRoute(field+".httpRoute", route.HTTPRoute)
	}
	if route.HTTP2Route != nil {
		spec.HTTP2Route = b.httpRoute(field+".http2Route", route.HTTP2Route)
	}
	if grpc := route.GRPCRoute; grpc != nil {
		spec.GRPCRoute = &mesh.GRPCRoute{
			Match: mesh.GRPCRouteMatch{
				ServiceName: valueOf(grpc.Match.ServiceName),
				MethodName:  valueOf(grpc.Match.MethodName),
				Metadata:    metadata(grpc.Match.Metadata),
				Port:        int32Ptr(grpc.Match.Port),
			},
			Action:      b.routeAction(field+".grpcRoute", grpc.Action),
			Timeout:     grpcTimeout(grpc.Timeout),
			RetryPolicy: grpcRetry(grpc.RetryPolicy),
		}
	}
	if tcp := route.TCPRoute; tcp != nil {
		spec.TCPRoute = &mesh.TCPRoute{
			Action:  b.routeAction(field+".tcpRoute", tcp.Action),
			Timeout: tcpTimeout(tcp.Timeout),
		}
		if tcp.Match != nil {
			spec.TCPRoute.Match = &mesh.TCPRouteMatch{Port: int32Ptr(tcp.Match.Port)}
		}
	}
	return spec
}

func (b *builder) httpRoute(field string, route *v1beta2.HTTPRoute) *mesh.HTTPRoute {
	return &mesh.HTTPRoute{
		Match: mesh.HTTPRouteMatch{
			Prefix:          copyPtr(route.Match.Prefix),
			Path:            pathMatch(route.Match.Path),
			QueryParameters: queryParameters(route.Match.QueryParameters),
			Headers:         headers(route.Match.Headers),
			Method:          string(valueOf(route.Match.Method)),
			Scheme:          string(valueOf(route.Match.Scheme)),
			Port:            int32Ptr(route.Match.Port),
		},
		Action:      b.routeAction(field, route.Action),
		Timeout:     httpTimeout(route.Timeout),
		RetryPolicy: httpRetry(route.RetryPolicy),
	}
}

func (b *builder) routeAction(field string, action v1beta2.RouteAction) mesh.RouteAction {
	var out mesh.RouteAction
	field += ".action.weightedTargets"
	for i := range action.WeightedTargets {
		target := &action.WeightedTargets[i]
		name, ok := b.virtualNodeName(fmt.Sprintf("%s[%d]", field, i), target.VirtualNodeRef, target.VirtualNodeARN)
		if !ok {
			continue
		}
		b.keep(field, i)
		out.WeightedTargets = append(out.WeightedTargets, mesh.WeightedTarget{
			VirtualNode: name,
			Weight:      int32Of(target.Weight),
			Port:        int32Ptr(target.Port),
		})
	}
	if len(action.WeightedTargets) > 0 && len(out.WeightedTargets) == 0 {
		b.empty(field)
	}
	return out
}

func (b *builder) gatewayRouteSpec(o *v1beta2.GatewayRouteSpec) mesh.GatewayRouteSpec {
	spec := mesh.GatewayRouteSpec{Priority: int32Ptr(o.Priority)}
	if o.HTTPRoute != nil {
		spec.HTTPRoute = b.httpGatewayRoute("spec.httpRoute", o.HTTPRoute)
	}
	if o.HTTP2Route != nil {
		spec.HTTP2Route = b.httpGatewayRoute("spec.http2Route", o.HTTP2Route)
	}
	if o.GRPCRoute != nil {
		spec.GRPCRoute = b.grpcGatewayRoute("spec.grpcRoute", o.GRPCRoute)
	}
	return spec
}

func (b *builder) httpGatewayRoute(field string, route *v1beta2.HTTPGatewayRoute) *mesh.HTTPGatewayRoute {
	out := &mesh.HTTPGatewayRoute{
		Match: mesh.HTTPGatewayRouteMatch{
			Prefix:          copyPtr(route.Match.Prefix),
			Path:            pathMatch(route.Match.Path),
			QueryParameters: queryParameters(route.Match.QueryParameters),
			Headers:         headers(route.Match.Headers),
			Method:          string(valueOf(route.Match.Method)),
			Hostname:        hostnameMatch(route.Match.Hostname),
			Port:            int32Ptr(route.Match.Port),
		},
		Action: mesh.HTTPGatewayRouteAction{Target: b.gatewayTarget(field, route.Action.Target)},
	}
	rewrite := route.Action.Rewrite
	if rewrite == nil {
		return out
	}
	out.Action.Rewrite = &mesh.HTTPGatewayRouteRewrite{Hostname: hostnameRewrite(rewrite.Hostname)}
	if prefix := rewrite.Prefix; prefix != nil {
		out.Action.Rewrite.Prefix = &mesh.PrefixRewrite{
			DefaultPrefix: mesh.DefaultRewrite(valueOf(prefix.DefaultPrefix)),
			Value:         copyPtr(prefix.Value),
		}
	}
	if path := rewrite.Path; path != nil {
		out.Action.Rewrite.Path = &mesh.PathRewrite{Exact: copyPtr(path.Exact)}
	}
	return out
}

func (b *builder) grpcGatewayRoute(field string, route *v1beta2.GRPCGatewayRoute) *mesh.GRPCGatewayRoute {
	out := &mesh.GRPCGatewayRoute{
		Match: mesh.GRPCGatewayRouteMatch{
			ServiceName: valueOf(route.Match.ServiceName),
			Hostname:    hostnameMatch(route.Match.Hostname),
			Metadata:    metadata(route.Match.Metadata),
			Port:        int32Ptr(route.Match.Port),
		},
		Action: mesh.GRPCGatewayRouteAction{Target: b.gatewayTarget(field, route.Action.Target)},
	}
	if rewrite := route.Action.Rewrite; rewrite != nil {
		out.Action.Rewrite = &mesh.GRPCGatewayRouteRewrite{Hostname: hostnameRewrite(rewrite.Hostname)}
	}
	return out
}

// gatewayTarget has an empty name for a service that does not exist: the route stays, for its requests must not reach
// another one.
func (b *builder) gatewayTarget(field string, target v1beta2.GatewayRouteTarget) mesh.GatewayRouteTarget {
	service := target.VirtualService
	name, _ := b.virtualServiceName(field+".action.target.virtualService", service.VirtualServiceRef, service.VirtualServiceARN)
	return mesh.GatewayRouteTarget{
		VirtualService: mesh.GatewayRouteVirtualService{VirtualServiceName: name},
		Port:           int32Ptr(target.Port),
	}
}
