// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// gateway is which routes a VirtualGateway takes.
type gateway struct {
	// namespaces is nil for the gateway's own namespace alone.
	namespaces labels.Selector
	routes     labels.Selector
	findings   []mesh.Finding
}

func (g *gateway) found() []mesh.Finding { return g.findings }

func gatewayFacts(r *reader, id ID) *gateway {
	object, in := get[*v1beta2.VirtualGateway](r, id)
	if in == nil {
		return nil
	}
	f := findings{source: in.source}
	facts := &gateway{routes: labels.Everything()}
	if object.Spec.NamespaceSelector != nil {
		facts.namespaces = f.selector("spec.namespaceSelector", object.Spec.NamespaceSelector)
	}
	if object.Spec.GatewayRouteSelector != nil {
		facts.routes = f.selector("spec.gatewayRouteSelector", object.Spec.GatewayRouteSelector)
	}
	facts.findings = f.list
	return facts
}

// bind finds the gateway of a GatewayRoute, and the route's mesh and name.
func (d *Decoder) bind(r *reader, id ID) *identity {
	object, in := get[*v1beta2.GatewayRoute](r, id)
	if in == nil {
		return nil
	}
	f := findings{source: in.source}
	out := &identity{created: in.created()}
	d.join(r, &f, out, membership{ref: object.Spec.MeshRef})
	if gateway, ok := f.gatewayOf(r, object); ok && out.mesh != "" {
		f.bindTo(r, out, gateway, nameOr(object.Spec.AWSName, object.Name+"_"+object.Namespace))
	}
	out.findings = f.list
	return out
}

// gatewayOf finds the gateway that takes a route: the stored reference wins, then the gateways' selectors.
func (f *findings) gatewayOf(r *reader, route *v1beta2.GatewayRoute) (ID, bool) {
	if ref := route.Spec.VirtualGatewayRef; ref != nil {
		id := ID{Kind: kindVirtualGateway, Namespace: nameOr(ref.Namespace, route.Namespace), Name: ref.Name}
		if identityOf(r, id) != nil {
			return id, true
		}
		f.add(problem{
			reason:  mesh.ReasonRefNotFound,
			field:   "spec.virtualGatewayRef.name",
			value:   ref.Name,
			message: fmt.Sprintf("there is no VirtualGateway %s/%s, to which this route belongs", id.Namespace, id.Name),
			mend:    "create the VirtualGateway, or leave virtualGatewayRef out",
		})
		return ID{}, false
	}
	var matches []ID
	own := namespaceLabels(r, route.Namespace)
	for _, id := range read[[]ID](r, indexGateways) {
		facts := read[*gateway](r, cellKey{stage: stageGateway, id: id})
		if facts == nil || !facts.routes.Matches(labels.Set(route.Labels)) {
			continue
		}
		if facts.namespaces == nil && id.Namespace == route.Namespace || facts.namespaces != nil && facts.namespaces.Matches(own) {
			matches = append(matches, id)
		}
	}
	if len(matches) == 1 {
		return matches[0], true
	}
	f.noGateway(route, matches)
	return ID{}, false
}

func (f *findings) noGateway(route *v1beta2.GatewayRoute, matches []ID) {
	if len(matches) == 0 {
		f.add(problem{
			reason:  mesh.ReasonRefNotFound,
			field:   "metadata.namespace",
			value:   route.Namespace,
			message: fmt.Sprintf("no VirtualGateway takes the GatewayRoutes of namespace %q with these labels", route.Namespace),
			mend:    "let the namespaceSelector and gatewayRouteSelector of a VirtualGateway match this route",
		})
		return
	}
	names := make([]string, 0, len(matches))
	for _, id := range matches {
		names = append(names, id.Namespace+"/"+id.Name)
	}
	f.add(problem{
		reason:  mesh.ReasonRefAmbiguous,
		field:   "metadata.namespace",
		value:   route.Namespace,
		message: "several VirtualGateways take this route, and a route belongs to one: " + strings.Join(names, ", "),
		mend:    "narrow the selectors of all but one of them, or set spec.virtualGatewayRef",
	})
}

// bindTo names a route under its gateway, if both are of one mesh.
func (f *findings) bindTo(r *reader, out *identity, gateway ID, name string) {
	at := identityOf(r, gateway)
	if at.mesh != out.mesh {
		f.add(problem{
			reason: mesh.ReasonInvalid,
			field:  "spec.virtualGatewayRef",
			value:  gateway.Name,
			message: fmt.Sprintf("this route belongs to mesh %q, and the VirtualGateway %s/%s that takes it to mesh %q",
				out.mesh, gateway.Namespace, gateway.Name, at.mesh),
			mend: "bring both into one mesh",
		})
		return
	}
	out.gateway = gateway
	out.key = mesh.GatewayRouteKey(out.mesh, at.key.Name, name)
}
