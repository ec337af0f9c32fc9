// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// Rules are all that this package does with the API: in the cluster's role, and in that of the controller's own namespace.
func Rules() (cluster, own []rbacv1.PolicyRule) {
	kinds := Plurals()
	statuses := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		statuses = append(statuses, kind+"/status")
	}
	read := []string{"get", "list", "watch"}
	cluster = []rbacv1.PolicyRule{
		// Patching the objects themselves takes the finalizers of the original controllers off.
		{APIGroups: []string{v1beta2.Group}, Resources: kinds, Verbs: append([]string{"patch"}, read...)},
		{APIGroups: []string{v1beta2.Group}, Resources: statuses, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces", "pods", "services"}, Verbs: read},
		{APIGroups: []string{"discovery.k8s.io"}, Resources: []string{"endpointslices"}, Verbs: read},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: read},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
	own = []rbacv1.PolicyRule{
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"create"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, ResourceNames: []string{LeaseName}, Verbs: []string{"get", "update"}},
	}
	return cluster, own
}

// Plurals are the names of the mesh's kinds in paths of the API.
func Plurals() []string {
	return []string{"meshes", "virtualnodes", "virtualservices", "virtualrouters", "virtualgateways", "gatewayroutes", "backendgroups"}
}
