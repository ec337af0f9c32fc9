// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"slices"
	"strings"
)

// withoutFinalizers leaves out those that the original controllers of both API versions set: they guard what was kept in AWS, and nobody else takes them off.
func withoutFinalizers(list []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool {
		return strings.HasPrefix(name, "finalizers.appmesh.k8s.aws/") || strings.HasSuffix(name, "Deletion.finalizers.appmesh.k8s.aws")
	})
}
