// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/admission/review"
)

// joinGateway decides on the gateway of a new GatewayRoute. A route that no gateway takes yet waits for one.
func (a *admitter) joinGateway(ctx context.Context, s *subject) ([]string, error) {
	gateways, err := a.Lookup.Gateways(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing virtual gateways: %w", err)
	}
	if *s.gatewayRef != nil {
		return joinNamedGateway(s, gateways)
	}
	set, err := a.namespaceLabels(ctx, s.object.GetNamespace())
	if err != nil {
		return nil, err
	}
	var matches []*v1beta2.VirtualGateway
	for _, g := range gateways {
		if takes(g, s, set) {
			matches = append(matches, g)
		}
	}
	switch len(matches) {
	case 0:
		return []string{fmt.Sprintf("%s: no VirtualGateway takes this route yet (by its namespaceSelector and gatewayRouteSelector); it waits for one", s)}, nil
	case 1:
	default:
		names := make([]string, 0, len(matches))
		for _, g := range matches {
			names = append(names, g.Namespace+"/"+g.Name)
		}
		slices.Sort(names)
		return nil, review.Refusef("%s cannot be created: found multiple matching virtualGateways for namespace: %s, expecting 1 but found %d: %s. "+
			"Narrow the selectors of all but one of them, or name one in spec.virtualGatewayRef",
			s, s.object.GetNamespace(), len(names), strings.Join(names, ", "))
	}
	g := matches[0]
	if err := oneMesh(s, g); err != nil {
		return nil, err
	}
	*s.gatewayRef = &v1beta2.VirtualGatewayReference{Namespace: new(g.Namespace), Name: g.Name, UID: g.UID}
	return nil, nil
}

// takes says whether a gateway serves a route: by the labels of its namespace and by its own. A gateway without a
// namespaceSelector serves its own namespace.
func takes(g *v1beta2.VirtualGateway, s *subject, namespace labels.Set) bool {
	if selector := g.Spec.GatewayRouteSelector; selector != nil && !selects(selector, s.object.GetLabels()) {
		return false
	}
	if g.Spec.NamespaceSelector == nil {
		return g.Namespace == s.object.GetNamespace()
	}
	return selects(g.Spec.NamespaceSelector, namespace)
}

// joinNamedGateway joins the gateway that the route names itself. It may come later in the same file.
func joinNamedGateway(s *subject, gateways []*v1beta2.VirtualGateway) ([]string, error) {
	ref := **s.gatewayRef
	namespace := orElse(ref.Namespace, s.object.GetNamespace())
	i := slices.IndexFunc(gateways, func(g *v1beta2.VirtualGateway) bool { return g.Namespace == namespace && g.Name == ref.Name })
	defer func() { *s.gatewayRef = &ref }()
	if i < 0 {
		ref.UID = ""
		return []string{fmt.Sprintf("spec.virtualGatewayRef: there is no VirtualGateway %s/%s yet; the route waits for it", namespace, ref.Name)}, nil
	}
	g := gateways[i]
	if err := oneMesh(s, g); err != nil {
		return nil, err
	}
	var warnings []string
	if ref.UID != "" && ref.UID != g.UID {
		warnings = append(warnings, fmt.Sprintf("spec.virtualGatewayRef.uid: %s is not the VirtualGateway %s/%s of this cluster; its uid %s is set instead",
			ref.UID, namespace, ref.Name, g.UID))
	}
	ref.UID = g.UID
	return warnings, nil
}

// oneMesh refuses a gateway of another mesh than the route's.
func oneMesh(s *subject, g *v1beta2.VirtualGateway) error {
	if g.Spec.MeshRef == nil {
		return nil
	}
	own := s.mesh()
	if own == g.Spec.MeshRef.Name {
		return nil
	}
	return review.Refusef("%s belongs to the Mesh %q, and the VirtualGateway %s/%s that takes it to the Mesh %q (virtualGateway referenced does not belong to the mesh referenced in GatewayRoute Create): "+
		"let a gateway of the route's own mesh take it", s, own, g.Namespace, g.Name, g.Spec.MeshRef.Name)
}
