// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// Rules are all that this package does with the API, in the cluster's role. The watch is the cache's, which it reads first.
func Rules() []rbacv1.PolicyRule {
	read := []string{"get", "list", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{v1beta2.Group}, Resources: []string{"meshes", "virtualnodes", "virtualgateways"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: read},
	}
}
