// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta1

import "github.com/tulle-mesh/tulle/api/v1beta2"

// Origin is the version in which an object was made.
// +kubebuilder:validation:Enum=v1beta2
type Origin string

// OriginV1beta2 marks an object that was made in v1beta2: its App Mesh name and its mesh are those that it carries.
const OriginV1beta2 Origin = "v1beta2"

// naming is how an object of this version says its App Mesh name and its mesh.
type naming struct {
	origin   Origin
	awsName  *string
	meshRef  *v1beta2.MeshReference
	meshName string
}

// toV1beta2 returns v1beta2's awsName, meshRef and meshName; mangled is the name that this version gives.
func (n naming) toV1beta2(mangled string) (awsName *string, ref *v1beta2.MeshReference, meshName *string) {
	if n.origin == OriginV1beta2 {
		if n.meshName != nameOfRef(n.meshRef) {
			// Somebody wrote another name here: both are kept, and admission says that they differ.
			meshName = new(n.meshName)
		}
		return clonePtr(n.awsName), clonePtr(n.meshRef), meshName
	}
	return nameOr(n.awsName, mangled), n.reference(), new(n.meshName)
}

// reference is the mesh of an object of this version: the one that it carries, else that of its meshName. An empty one
// that it carries stands for none.
func (n naming) reference() *v1beta2.MeshReference {
	switch {
	case n.meshRef == nil:
		return meshRef(n.meshName)
	case n.meshRef.Name == "":
		return nil
	}
	return clonePtr(n.meshRef)
}

// namingFrom says in this version what v1beta2's awsName, meshRef and meshName say.
func namingFrom(awsName *string, ref *v1beta2.MeshReference, meshName *string, mangled string) naming {
	if meshName == nil {
		return naming{origin: OriginV1beta2, awsName: clonePtr(awsName), meshRef: clonePtr(ref), meshName: nameOfRef(ref)}
	}
	out := naming{meshName: *meshName, awsName: carriedName(awsName, mangled)}
	derived := meshRef(*meshName)
	switch {
	case ref == nil && derived != nil:
		out.meshRef = &v1beta2.MeshReference{}
	case ref != nil && (derived == nil || *derived != *ref):
		out.meshRef = clonePtr(ref)
	}
	return out
}

// nameOr is the App Mesh name of an object: the one that it carries, else the given one. An empty one that it carries
// stands for none.
func nameOr(carried *string, name string) *string {
	switch {
	case carried == nil:
		return new(name)
	case *carried == "":
		return nil
	}
	return clonePtr(carried)
}

// carriedName is what an object carries so that nameOr gives its name back.
func carriedName(name *string, otherwise string) *string {
	switch {
	case name == nil:
		return new("")
	case *name == otherwise:
		return nil
	}
	return clonePtr(name)
}

func nameOfRef(ref *v1beta2.MeshReference) string {
	if ref == nil {
		return ""
	}
	return ref.Name
}
