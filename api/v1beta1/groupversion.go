// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// Version is the name of this version inside the group.
const Version = "v1beta1"

// GroupVersion returns the group and version of the types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: v1beta2.Group, Version: Version}
}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(
		GroupVersion(),
		&Mesh{}, &MeshList{},
		&VirtualNode{}, &VirtualNodeList{},
		&VirtualService{}, &VirtualServiceList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
