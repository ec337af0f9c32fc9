// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package v1beta1 holds the custom resource types of appmesh.k8s.aws/v1beta1, the API's first version, and their
// conversion from and to v1beta2, in which everything is stored. Decoders, controllers and clients may use it.
//
// Its kinds also carry the fields that only v1beta2 has, each marked "carried for v1beta2", under that version's names, so
// that an object which is read and written back in this version loses nothing.
//
// +kubebuilder:object:generate=true
// +groupName=appmesh.k8s.aws
package v1beta1
