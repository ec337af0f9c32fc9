// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// status is where an object keeps what this package writes.
type status struct {
	conditions *[]v1beta2.Condition
	observed   **int64
	// arn is nil for a kind without one.
	arn **string
	// routes is nil for all kinds but routers.
	routes *map[string]string
	active v1beta2.ConditionType
	// model is the kind of the model that arn names.
	model mesh.Kind
}

// statusOf returns the places in a custom resource, and false for any other object.
func statusOf(object client.Object) (status, bool) {
	switch o := object.(type) {
	case *v1beta2.Mesh:
		s := &o.Status
		return status{&s.Conditions, &s.ObservedGeneration, &s.MeshARN, nil, v1beta2.MeshActive, mesh.KindMesh}, true
	case *v1beta2.VirtualNode:
		s := &o.Status
		return status{&s.Conditions, &s.ObservedGeneration, &s.VirtualNodeARN, nil, v1beta2.VirtualNodeActive, mesh.KindVirtualNode}, true
	case *v1beta2.VirtualService:
		s := &o.Status
		return status{&s.Conditions, &s.ObservedGeneration, &s.VirtualServiceARN, nil, v1beta2.VirtualServiceActive, mesh.KindVirtualService}, true
	case *v1beta2.VirtualRouter:
		s := &o.Status
		return status{&s.Conditions, &s.ObservedGeneration, &s.VirtualRouterARN, &s.RouteARNs, v1beta2.VirtualRouterActive, mesh.KindVirtualRouter}, true
	case *v1beta2.VirtualGateway:
		s := &o.Status
		return status{&s.Conditions, &s.ObservedGeneration, &s.VirtualGatewayARN, nil, v1beta2.VirtualGatewayActive, mesh.KindVirtualGateway}, true
	case *v1beta2.GatewayRoute:
		s := &o.Status
		return status{&s.Conditions, &s.ObservedGeneration, &s.GatewayRouteARN, nil, v1beta2.GatewayRouteActive, mesh.KindGatewayRoute}, true
	case *v1beta2.BackendGroup:
		s := &o.Status
		return status{&s.Conditions, &s.ObservedGeneration, nil, nil, "", ""}, true
	}
	return status{}, false
}

// reportedKind says whether objects of a kind have a status that this package writes.
func reportedKind(kind string) bool {
	switch mesh.Kind(kind) {
	case mesh.KindMesh, mesh.KindVirtualNode, mesh.KindVirtualService, mesh.KindVirtualRouter, mesh.KindVirtualGateway, mesh.KindGatewayRoute:
		return true
	default:
		return kind == "BackendGroup"
	}
}

// name sets the ARNs to those of the keys that came from the object.
func (s status) name(o mesh.Options, keys map[mesh.Key]struct{}) {
	if s.arn == nil {
		return
	}
	*s.arn = nil
	var routes map[string]string
	for key := range keys {
		arn := o.ARN(key)
		switch key.Kind {
		case s.model:
			*s.arn = &arn
		case mesh.KindRoute:
			if routes == nil {
				routes = map[string]string{}
			}
			routes[key.Name] = arn
		default:
			// The implicit router of a v1beta1 service has no place in the service's status.
		}
	}
	if s.routes != nil {
		*s.routes = routes
	}
}

// StatusOf reads what a control plane has said of a custom resource; nothing for any other object.
func StatusOf(object client.Object) (conditions []v1beta2.Condition, observed int64, arn string) {
	s, ok := statusOf(object)
	if !ok {
		return nil, 0, ""
	}
	if *s.observed != nil {
		observed = **s.observed
	}
	if s.arn != nil && *s.arn != nil {
		arn = **s.arn
	}
	return *s.conditions, observed, arn
}
