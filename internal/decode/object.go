// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"cmp"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta1"
	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// The kinds that mean something to the mesh.
const (
	kindMesh           = "Mesh"
	kindVirtualNode    = "VirtualNode"
	kindVirtualService = "VirtualService"
	kindVirtualRouter  = "VirtualRouter"
	kindVirtualGateway = "VirtualGateway"
	kindGatewayRoute   = "GatewayRoute"
	kindBackendGroup   = "BackendGroup"
	kindNamespace      = "Namespace"
	kindService        = "Service"
	kindEndpointSlice  = "EndpointSlice"
	kindPod            = "Pod"
	kindDeployment     = "Deployment"
)

// ID is the identity of a Kubernetes object. The API version is no part of it: both versions of a custom resource are one
// object.
type ID struct {
	Kind string
	// Namespace is empty for Mesh and Namespace.
	Namespace string
	Name      string
}

// Compare orders IDs by kind, namespace and name.
func (id ID) Compare(other ID) int {
	return cmp.Or(
		cmp.Compare(id.Kind, other.Kind),
		cmp.Compare(id.Namespace, other.Namespace),
		cmp.Compare(id.Name, other.Name),
	)
}

// Object is a Kubernetes object and where it was written.
type Object struct {
	// Object is one of the types of api/v1beta1 and api/v1beta2, or a Namespace, Service, EndpointSlice or Pod, or the
	// metadata of a Deployment.
	Object metav1.Object
	// APIVersion is the one under which the object was written; empty takes that of its type.
	APIVersion string
	// File and Line (from 1) are set for manifests on disk.
	File string
	Line int
	// Findings are what reading the object has found; they are reported with those of decoding it.
	Findings []mesh.Finding
}

// IDOf returns the identity of an object, and false for a kind that means nothing to the mesh.
func IDOf(object metav1.Object) (ID, bool) {
	kind, _ := kindOf(object)
	if kind == "" {
		return ID{}, false
	}
	id := ID{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}
	if kind == kindMesh || kind == kindNamespace {
		id.Namespace = ""
	}
	return id, true
}

func kindOf(object metav1.Object) (kind, apiVersion string) {
	switch o := object.(type) {
	case *metav1.PartialObjectMetadata:
		if o.Kind == kindDeployment {
			return kindDeployment, o.APIVersion
		}
		return "", ""
	case *corev1.Namespace:
		return kindNamespace, "v1"
	case *corev1.Service:
		return kindService, "v1"
	case *corev1.Pod:
		return kindPod, "v1"
	case *discoveryv1.EndpointSlice:
		return kindEndpointSlice, discoveryv1.SchemeGroupVersion.String()
	case *v1beta1.Mesh:
		return kindMesh, v1beta1.GroupVersion().String()
	case *v1beta1.VirtualNode:
		return kindVirtualNode, v1beta1.GroupVersion().String()
	case *v1beta1.VirtualService:
		return kindVirtualService, v1beta1.GroupVersion().String()
	}
	return kindOfStored(object), v1beta2.GroupVersion().String()
}

// kindOfStored is the kind of a custom resource in the stored version, empty for anything else.
func kindOfStored(object metav1.Object) string {
	switch object.(type) {
	case *v1beta2.Mesh:
		return kindMesh
	case *v1beta2.VirtualNode:
		return kindVirtualNode
	case *v1beta2.VirtualService:
		return kindVirtualService
	case *v1beta2.VirtualRouter:
		return kindVirtualRouter
	case *v1beta2.VirtualGateway:
		return kindVirtualGateway
	case *v1beta2.GatewayRoute:
		return kindGatewayRoute
	case *v1beta2.BackendGroup:
		return kindBackendGroup
	}
	return ""
}

// input is an object as it was given, in the stored version of its kind.
type input struct {
	id       ID
	object   metav1.Object
	source   mesh.Source
	findings []mesh.Finding
}

func newInput(o Object) (*input, bool) {
	id, ok := IDOf(o.Object)
	if !ok {
		return nil, false
	}
	_, apiVersion := kindOf(o.Object)
	in := &input{
		id:     id,
		object: o.Object,
		source: mesh.Source{
			APIVersion: cmp.Or(o.APIVersion, apiVersion),
			Kind:       id.Kind,
			Namespace:  id.Namespace,
			Name:       id.Name,
			File:       o.File,
			Line:       o.Line,
		},
		findings: o.Findings,
	}
	switch old := o.Object.(type) {
	case *v1beta1.Mesh:
		in.object = old.ToV1beta2()
	case *v1beta1.VirtualNode:
		in.object = old.ToV1beta2()
	case *v1beta1.VirtualService:
		in.object = old.ToV1beta2()
	}
	return in, true
}

// get reads an object of a known type, and nil where there is none.
func get[T metav1.Object](r *reader, id ID) (T, *input) {
	in := read[*input](r, cellKey{stage: stageInput, id: id})
	if in == nil {
		var none T
		return none, nil
	}
	object, ok := in.object.(T)
	if !ok {
		return object, nil
	}
	return object, in
}

func (in *input) created() time.Time { return in.object.GetCreationTimestamp().Time }

// meta is the part that all model objects made from in share.
func (in *input) meta(id *identity) mesh.Meta {
	return mesh.Meta{
		MeshName:  id.mesh,
		Name:      id.key.Name,
		Owner:     id.owner,
		UID:       string(in.object.GetUID()),
		Version:   in.object.GetGeneration(),
		CreatedAt: in.created(),
		Source:    in.source,
	}
}

var memberKinds = []string{kindVirtualNode, kindVirtualService, kindVirtualRouter, kindVirtualGateway, kindBackendGroup}

// derived are the cells that an object of id's kind gives rise to.
func derived(id ID) []cellKey {
	at := func(list ...stage) []cellKey {
		keys := make([]cellKey, 0, len(list))
		for _, s := range list {
			keys = append(keys, cellKey{stage: s, id: id})
		}
		return keys
	}
	switch {
	case id.Kind == kindMesh:
		return at(stageMesh, stageContent)
	case id.Kind == kindVirtualGateway:
		return at(stageIdentity, stageGateway, stageContent)
	case id.Kind == kindGatewayRoute:
		return at(stageBinding, stageContent)
	case slices.Contains(memberKinds, id.Kind):
		return at(stageIdentity, stageContent)
	case id.Kind == kindService, id.Kind == kindEndpointSlice:
		return at(stageContent)
	case id.Kind == kindPod:
		return at(stageWorkload)
	}
	return nil
}

var (
	indexMeshes   = cellKey{stage: stageIndex, id: ID{Kind: kindMesh}}
	indexGateways = cellKey{stage: stageIndex, id: ID{Kind: kindVirtualGateway}}
)

func indexIn(kind, namespace string) cellKey {
	return cellKey{stage: stageIndex, id: ID{Kind: kind, Namespace: namespace}}
}

// indexes are the lists on which an object stands.
func indexes(id ID) []cellKey {
	switch id.Kind {
	case kindMesh:
		return []cellKey{indexMeshes}
	case kindVirtualGateway:
		return []cellKey{indexGateways, indexIn(id.Kind, id.Namespace)}
	case kindVirtualNode, kindVirtualService:
		return []cellKey{indexIn(id.Kind, id.Namespace)}
	}
	return nil
}
