// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"cmp"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Faults returns what is wrong with an object of v1beta2 taken by itself, sorted: everything that it refers to is taken to
// exist. apiVersion is the one in which the user wrote it, so that fields bear the names that the user knows; defaultMesh
// is that of decode.Options. Findings of severity error are reasons to refuse it.
func Faults(object metav1.Object, apiVersion, defaultMesh string) []mesh.Finding {
	w := newWorld(object, defaultMesh)
	if w == nil {
		return nil
	}
	decoder := decode.New(decode.Options{DefaultMesh: defaultMesh})
	for _, stand := range w.stands {
		decoder.Set(decode.Object{Object: stand})
	}
	decoder.Set(decode.Object{Object: w.object, APIVersion: apiVersion})
	id, _ := decode.IDOf(w.object)
	var list []mesh.Finding
	for source, found := range decoder.Flush().Findings {
		if source.Kind != id.Kind || source.Namespace != id.Namespace || source.Name != id.Name {
			continue
		}
		for _, f := range found {
			if ofItself(f.Reason) {
				// A stored object that names a backend twice is served; one that is written that way is refused, as it was.
				if f.Reason == mesh.ReasonDuplicate && apiVersion == v1beta2.GroupVersion().String() {
					f.Severity = mesh.SeverityError
				}
				list = append(list, f)
			}
		}
	}
	return mesh.SortFindings(list)
}

// ofItself says whether a reason speaks of the object alone, and not of what else is in the cluster.
func ofItself(reason mesh.Reason) bool {
	switch reason {
	case mesh.ReasonInvalid, mesh.ReasonDuplicate, mesh.ReasonIgnored, mesh.ReasonPortConflict:
		return true
	default:
		return false
	}
}

// world is an object among stand-ins for everything that it refers to.
type world struct {
	object metav1.Object
	mesh   string
	// own is the namespace of the object.
	own    string
	stands []metav1.Object
	had    map[decode.ID]struct{}
	named  map[mesh.Key]struct{}
}

// unnamed stands for the name that the API server will make.
const unnamed = "x"

func newWorld(object metav1.Object, defaultMesh string) *world {
	w := &world{own: object.GetNamespace(), had: map[decode.ID]struct{}{}, named: map[mesh.Key]struct{}{}}
	switch o := object.(type) {
	case *v1beta2.Mesh:
		w.object = o.DeepCopy()
	case *v1beta2.VirtualNode:
		copied := o.DeepCopy()
		w.object = copied
		w.join(&copied.Spec.MeshRef, cmp.Or(valueOf(o.Spec.MeshName), defaultMesh))
		w.node(copied)
	case *v1beta2.VirtualService:
		copied := o.DeepCopy()
		w.object = copied
		w.join(&copied.Spec.MeshRef, cmp.Or(valueOf(o.Spec.MeshName), defaultMesh))
		w.service(copied)
	case *v1beta2.VirtualRouter:
		copied := o.DeepCopy()
		w.object = copied
		w.join(&copied.Spec.MeshRef, "")
		w.router(copied)
	case *v1beta2.VirtualGateway:
		copied := o.DeepCopy()
		w.object = copied
		w.join(&copied.Spec.MeshRef, "")
	case *v1beta2.GatewayRoute:
		copied := o.DeepCopy()
		w.object = copied
		w.join(&copied.Spec.MeshRef, "")
		w.gatewayRoute(copied)
	default:
		return nil
	}
	if w.object.GetName() == "" {
		w.object.SetName(w.object.GetGenerateName() + unnamed)
	}
	return w
}

// join makes the object's mesh exist.
func (w *world) join(ref **v1beta2.MeshReference, otherwise string) {
	if *ref == nil || (*ref).Name == "" {
		*ref = &v1beta2.MeshReference{Name: cmp.Or(otherwise, "mesh")}
	}
	w.mesh = (*ref).Name
	w.add("Mesh", &v1beta2.Mesh{ObjectMeta: metav1.ObjectMeta{Name: w.mesh}})
}

func (w *world) add(kind string, object metav1.Object) {
	id := decode.ID{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
	if _, had := w.had[id]; !had {
		w.had[id] = struct{}{}
		w.stands = append(w.stands, object)
	}
}

func (w *world) meta(namespace *string, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: orElse(namespace, w.own), Name: name}
}

func (w *world) in() *v1beta2.MeshReference { return &v1beta2.MeshReference{Name: w.mesh} }

// claim says whether an App Mesh name is free in this world, and takes it.
func (w *world) claim(key mesh.Key) bool {
	_, taken := w.named[key]
	w.named[key] = struct{}{}
	return !taken
}

// byARN returns the App Mesh name that an ARN of the object's mesh gives to something of a kind, and false for any other
// ARN and for a name that something has already.
func (w *world) byARN(kind mesh.Kind, text *string) (string, bool) {
	if text == nil {
		return "", false
	}
	arn, err := mesh.ParseARN(*text)
	if err != nil || arn.Key.Kind != kind || !w.claim(mesh.Key{Kind: kind, Mesh: w.mesh, Name: arn.Key.Name}) {
		return "", false
	}
	return arn.Key.Name, true
}

// stand is the name of the n-th object that exists for its App Mesh name alone.
func (w *world) stand() string { return fmt.Sprintf("stand-in.%d", len(w.stands)) }

func (w *world) toNode(ref *v1beta2.VirtualNodeReference, arn *string) {
	if ref != nil {
		meta := w.meta(ref.Namespace, ref.Name)
		w.claim(mesh.NodeKey(w.mesh, meta.Name+"_"+meta.Namespace))
		w.add(kindVirtualNode, &v1beta2.VirtualNode{ObjectMeta: meta, Spec: v1beta2.VirtualNodeSpec{MeshRef: w.in()}})
	}
	if name, ok := w.byARN(mesh.KindVirtualNode, arn); ok {
		w.add(kindVirtualNode, &v1beta2.VirtualNode{
			ObjectMeta: w.meta(nil, w.stand()), Spec: v1beta2.VirtualNodeSpec{MeshRef: w.in(), AWSName: new(name)},
		})
	}
}

func (w *world) toRouter(ref *v1beta2.VirtualRouterReference, arn *string) {
	if ref != nil {
		w.add(kindVirtualRouter, &v1beta2.VirtualRouter{
			ObjectMeta: w.meta(ref.Namespace, ref.Name), Spec: v1beta2.VirtualRouterSpec{MeshRef: w.in()},
		})
	}
	if name, ok := w.byARN(mesh.KindVirtualRouter, arn); ok {
		w.add(kindVirtualRouter, &v1beta2.VirtualRouter{
			ObjectMeta: w.meta(nil, w.stand()), Spec: v1beta2.VirtualRouterSpec{MeshRef: w.in(), AWSName: new(name)},
		})
	}
}

func (w *world) toService(ref *v1beta2.VirtualServiceReference, arn, name *string) {
	if ref != nil {
		meta := w.meta(ref.Namespace, ref.Name)
		w.claim(mesh.VirtualServiceKey(w.mesh, meta.Name+"."+meta.Namespace))
		w.add(kindVirtualService, &v1beta2.VirtualService{ObjectMeta: meta, Spec: v1beta2.VirtualServiceSpec{MeshRef: w.in()}})
	}
	found, ok := w.byARN(mesh.KindVirtualService, arn)
	if !ok && name != nil && w.claim(mesh.VirtualServiceKey(w.mesh, *name)) {
		found, ok = *name, true
	}
	if ok && found != "" {
		w.add(kindVirtualService, &v1beta2.VirtualService{
			ObjectMeta: w.meta(nil, w.stand()), Spec: v1beta2.VirtualServiceSpec{MeshRef: w.in(), AWSName: new(found)},
		})
	}
}

func (w *world) node(o *v1beta2.VirtualNode) {
	for _, backend := range o.Spec.Backends {
		service := backend.VirtualService
		w.toService(service.VirtualServiceRef, service.VirtualServiceARN, nil)
	}
	for _, backend := range o.Spec.Backends {
		// Names come after references, whose stand-ins have names of their own.
		w.toService(nil, nil, backend.VirtualService.VirtualServiceName)
	}
	for _, group := range o.Spec.BackendGroups {
		if group.Name != "*" {
			w.add(kindBackendGroup, &v1beta2.BackendGroup{
				ObjectMeta: w.meta(group.Namespace, group.Name), Spec: v1beta2.BackendGroupSpec{MeshRef: w.in()},
			})
		}
	}
}

func (w *world) service(o *v1beta2.VirtualService) {
	if p := o.Spec.Provider; p != nil {
		if p.VirtualNode != nil {
			w.toNode(p.VirtualNode.VirtualNodeRef, p.VirtualNode.VirtualNodeARN)
		}
		if p.VirtualRouter != nil {
			w.toRouter(p.VirtualRouter.VirtualRouterRef, p.VirtualRouter.VirtualRouterARN)
		}
	}
	for i := range o.Spec.Routes {
		for _, action := range legacyActions(&o.Spec.Routes[i]) {
			for _, target := range action.WeightedTargets {
				if target.VirtualNodeName != "" && !strings.Contains(target.VirtualNodeName, "/") {
					w.toNode(&v1beta2.VirtualNodeReference{Name: target.VirtualNodeName}, nil)
				}
			}
		}
	}
}

func legacyActions(route *v1beta2.LegacyRoute) []v1beta2.LegacyRouteAction {
	var list []v1beta2.LegacyRouteAction
	if route.HTTP != nil {
		list = append(list, route.HTTP.Action)
	}
	if route.HTTP2 != nil {
		list = append(list, route.HTTP2.Action)
	}
	if route.GRPC != nil {
		list = append(list, route.GRPC.Action)
	}
	if route.TCP != nil {
		list = append(list, route.TCP.Action)
	}
	return list
}

func (w *world) router(o *v1beta2.VirtualRouter) {
	for i := range o.Spec.Routes {
		for _, action := range actions(&o.Spec.Routes[i]) {
			for _, target := range action.WeightedTargets {
				w.toNode(target.VirtualNodeRef, target.VirtualNodeARN)
			}
		}
	}
}

func actions(route *v1beta2.Route) []v1beta2.RouteAction {
	var list []v1beta2.RouteAction
	if route.HTTPRoute != nil {
		list = append(list, route.HTTPRoute.Action)
	}
	if route.HTTP2Route != nil {
		list = append(list, route.HTTP2Route.Action)
	}
	if route.GRPCRoute != nil {
		list = append(list, route.GRPCRoute.Action)
	}
	if route.TCPRoute != nil {
		list = append(list, route.TCPRoute.Action)
	}
	return list
}

func (w *world) gatewayRoute(o *v1beta2.GatewayRoute) {
	if o.Spec.VirtualGatewayRef == nil {
		o.Spec.VirtualGatewayRef = &v1beta2.VirtualGatewayReference{Name: unnamed}
	}
	ref := o.Spec.VirtualGatewayRef
	w.add(kindVirtualGateway, &v1beta2.VirtualGateway{
		ObjectMeta: w.meta(ref.Namespace, ref.Name), Spec: v1beta2.VirtualGatewaySpec{MeshRef: w.in()},
	})
	for _, target := range gatewayTargets(&o.Spec) {
		w.toService(target.VirtualService.VirtualServiceRef, target.VirtualService.VirtualServiceARN, nil)
	}
}

func gatewayTargets(spec *v1beta2.GatewayRouteSpec) []v1beta2.GatewayRouteTarget {
	var list []v1beta2.GatewayRouteTarget
	if spec.HTTPRoute != nil {
		list = append(list, spec.HTTPRoute.Action.Target)
	}
	if spec.HTTP2Route != nil {
		list = append(list, spec.HTTP2Route.Action.Target)
	}
	if spec.GRPCRoute != nil {
		list = append(list, spec.GRPCRoute.Action.Target)
	}
	return list
}
