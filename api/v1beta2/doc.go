// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package v1beta2 holds the custom resource types of appmesh.k8s.aws/v1beta2, the version in which they are stored.
// Decoders, controllers and clients may use it; it knows nothing but Kubernetes' own API machinery.
//
// Mesh, VirtualNode and VirtualService also carry the fields that only v1beta1 has, each marked "Legacy". They let an
// object written in the old version keep all it says when the API server stores it in this one.
//
// +kubebuilder:object:generate=true
// +groupName=appmesh.k8s.aws
package v1beta2
