// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Group is the API group of every custom resource of the mesh.
const Group = "appmesh.k8s.aws"

// Version is the name of this version inside the group.
const Version = "v1beta2"

// GroupVersion returns the group and version of the types in this package.
func GroupVersion() schema.GroupVersion {
	return schema.GroupVersion{Group: Group, Version: Version}
}

// AddToScheme registers the types of this package with a scheme.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(
		GroupVersion(),
		&Mesh{}, &MeshList{},
		&VirtualNode{}, &VirtualNodeList{},
		&VirtualService{}, &VirtualServiceList{},
		&VirtualRouter{}, &VirtualRouterList{},
		&VirtualGateway{}, &VirtualGatewayList{},
		&GatewayRoute{}, &GatewayRouteList{},
		&BackendGroup{}, &BackendGroupList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion())
	return nil
}
