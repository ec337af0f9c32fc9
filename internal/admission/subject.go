// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"cmp"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

const (
	kindMesh           = "Mesh"
	kindVirtualNode    = "VirtualNode"
	kindVirtualService = "VirtualService"
	kindVirtualRouter  = "VirtualRouter"
	kindVirtualGateway = "VirtualGateway"
	kindGatewayRoute   = "GatewayRoute"
	kindBackendGroup   = "BackendGroup"
)

// subject is the object of a request, and the fields of it that admission knows.
type subject struct {
	kind   string
	object metav1.Object
	// awsName is nil for a BackendGroup, which has no such field.
	awsName **string
	// meshRef is nil for a Mesh.
	meshRef **v1beta2.MeshReference
	// gatewayRef is nil for all but a GatewayRoute.
	gatewayRef **v1beta2.VirtualGatewayReference
	// meshName is v1beta1's, and legacy says whether the object is one of that version.
	meshName string
	legacy   bool
}

// kinds lists all kinds, sorted.
func kinds() []string {
	return []string{kindBackendGroup, kindGatewayRoute, kindMesh, kindVirtualGateway, kindVirtualNode, kindVirtualRouter, kindVirtualService}
}

// empty is an object of a kind.
func empty(kind string) metav1.Object {
	switch kind {
	case kindMesh:
		return &v1beta2.Mesh{}
	case kindVirtualNode:
		return &v1beta2.VirtualNode{}
	case kindVirtualService:
		return &v1beta2.VirtualService{}
	case kindVirtualRouter:
		return &v1beta2.VirtualRouter{}
	case kindVirtualGateway:
		return &v1beta2.VirtualGateway{}
	case kindGatewayRoute:
		return &v1beta2.GatewayRoute{}
	case kindBackendGroup:
		return &v1beta2.BackendGroup{}
	}
	return nil
}

// read makes a subject of an object as the API server sends it.
func read(kind string, raw []byte) (*subject, error) {
	object := empty(kind)
	if err := json.Unmarshal(raw, object); err != nil {
		return nil, err
	}
	s, _ := wrap(object)
	return s, nil
}

// wrap makes a subject of an object, and says false for one that is none of the kinds.
func wrap(object metav1.Object) (*subject, bool) {
	s := &subject{object: object}
	switch o := object.(type) {
	case *v1beta2.Mesh:
		s.kind, s.awsName = kindMesh, &o.Spec.AWSName
	case *v1beta2.VirtualNode:
		s.kind, s.awsName, s.meshRef = kindVirtualNode, &o.Spec.AWSName, &o.Spec.MeshRef
	case *v1beta2.VirtualService:
		s.kind, s.awsName, s.meshRef = kindVirtualService, &o.Spec.AWSName, &o.Spec.MeshRef
	case *v1beta2.VirtualRouter:
		s.kind, s.awsName, s.meshRef = kindVirtualRouter, &o.Spec.AWSName, &o.Spec.MeshRef
	case *v1beta2.VirtualGateway:
		s.kind, s.awsName, s.meshRef = kindVirtualGateway, &o.Spec.AWSName, &o.Spec.MeshRef
	case *v1beta2.GatewayRoute:
		s.kind, s.awsName, s.meshRef, s.gatewayRef = kindGatewayRoute, &o.Spec.AWSName, &o.Spec.MeshRef, &o.Spec.VirtualGatewayRef
	case *v1beta2.BackendGroup:
		s.kind, s.meshRef = kindBackendGroup, &o.Spec.MeshRef
	default:
		return nil, false
	}
	s.settle()
	return s, true
}

// settle notes whether the object is one of v1beta1.
func (s *subject) settle() {
	switch o := s.object.(type) {
	case *v1beta2.VirtualNode:
		s.legacy, s.meshName = o.Spec.MeshName != nil, valueOf(o.Spec.MeshName)
	case *v1beta2.VirtualService:
		s.legacy = o.Spec.MeshName != nil || o.Spec.VirtualRouter != nil || len(o.Spec.Routes) > 0
		s.meshName = valueOf(o.Spec.MeshName)
	}
}

// locate puts an object that names no namespace into that of its request.
func (s *subject) locate(namespace string) {
	if s.object.GetNamespace() == "" && s.kind != kindMesh {
		s.object.SetNamespace(namespace)
	}
}

// spec is the specification of the object.
func (s *subject) spec() any {
	switch o := s.object.(type) {
	case *v1beta2.Mesh:
		return o.Spec
	case *v1beta2.VirtualNode:
		return o.Spec
	case *v1beta2.VirtualService:
		return o.Spec
	case *v1beta2.VirtualRouter:
		return o.Spec
	case *v1beta2.VirtualGateway:
		return o.Spec
	case *v1beta2.GatewayRoute:
		return o.Spec
	case *v1beta2.BackendGroup:
		return o.Spec
	}
	return nil
}

// String is the object as messages name it: "VirtualNode shop/web".
func (s *subject) String() string {
	name := cmp.Or(s.object.GetName(), s.object.GetGenerateName())
	if s.kind != kindMesh {
		name = s.object.GetNamespace() + "/" + name
	}
	return s.kind + " " + name
}

// defaultName is the App Mesh name of an object that says none, and empty where that is not known yet.
func (s *subject) defaultName() string {
	name, namespace := s.object.GetName(), s.object.GetNamespace()
	switch {
	case name == "" || s.awsName == nil:
		// A generated name is made after admission; until it is written down the name is computed from it.
		return ""
	case s.kind == kindMesh:
		return name
	case s.kind == kindVirtualService:
		return name + "." + namespace
	}
	return name + "_" + namespace
}

// appMeshName is the name of the object in the App Mesh API.
func (s *subject) appMeshName() string {
	if s.awsName == nil {
		return ""
	}
	return cmp.Or(valueOf(*s.awsName), s.defaultName())
}

// mesh is the name of the Mesh object to which the object says that it belongs, and empty where it says nothing.
func (s *subject) mesh() string {
	if s.meshRef == nil {
		return ""
	}
	if ref := *s.meshRef; ref != nil && ref.Name != "" {
		return ref.Name
	}
	return s.meshName
}

// meshField is where the object says to which mesh it belongs.
func (s *subject) meshField() string {
	if s.legacy {
		return "spec.meshName"
	}
	return "spec.meshRef"
}

// modelKind is the kind of the model that the object becomes.
func (s *subject) modelKind() mesh.Kind { return mesh.Kind(s.kind) }

func valueOf[T any](p *T) T {
	if p == nil {
		var zero T
		return zero
	}
	return *p
}
