// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package v1beta1 holds the custom resource types of appmesh.k8s.aws/v1beta1, the API's first version, and their
// conversion to v1beta2, in which everything is stored. Decoders, controllers and clients may use it.
//
// +kubebuilder:object:generate=true
// +groupName=appmesh.k8s.aws
package v1beta1
