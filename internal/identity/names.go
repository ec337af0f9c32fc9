// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package identity

import (
	rbacv1 "k8s.io/api/rbac/v1"
)

// appLabel names the program that an object belongs to.
const appLabel = "app.kubernetes.io/name"

// ForController are the names that tulle controller goes by, in the chart's namespace or another. domain is that of the cluster's Services.
func ForController(namespace, domain string) Options {
	const app, webhooks, proxies = "appmesh-controller", "appmesh-controller-webhook-service", "appmesh-controller-xds"
	return Options{ //nolint:gosec // G101: a Secret's name is no secret
		Namespace: namespace, Secret: "appmesh-controller-certs", Publish: Bundle, Owner: app, App: app, Service: webhooks,
		Names:            append(serviceNames(webhooks, namespace, domain), serviceNames(proxies, namespace, domain)...),
		MutatingWebhooks: []string{app}, ValidatingWebhooks: []string{app},
		Definitions: []string{"meshes.appmesh.k8s.aws", "virtualnodes.appmesh.k8s.aws", "virtualservices.appmesh.k8s.aws"},
	}
}

// ForInjector are the names that tulle inject, the pod webhook of its own, goes by.
func ForInjector(namespace, domain string) Options {
	const app = "appmesh-inject"
	return Options{ //nolint:gosec // G101: a Secret's name is no secret
		Namespace: namespace, Secret: "appmesh-inject-certs", Owner: app, App: app, Service: app,
		Names: serviceNames(app, namespace, domain), MutatingWebhooks: []string{app},
	}
}

// serviceNames are the names by which a Service is called.
func serviceNames(service, namespace, domain string) []string {
	name := service + "." + namespace
	return []string{name, name + ".svc", name + ".svc." + domain}
}

// Rules are all that an identity with these options does with the API: in the cluster's role, and in that of its own namespace.
func (o Options) Rules() (cluster, own []rbacv1.PolicyRule) {
	verbs := []string{"get", "list", "watch", "patch"}
	add := func(group, resource string, names []string) {
		if len(names) > 0 {
			cluster = append(cluster, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: verbs})
		}
	}
	add("admissionregistration.k8s.io", "mutatingwebhookconfigurations", o.MutatingWebhooks)
	add("admissionregistration.k8s.io", "validatingwebhookconfigurations", o.ValidatingWebhooks)
	add("apiextensions.k8s.io", "customresourcedefinitions", o.Definitions)
	if len(o.Definitions) > 0 {
		// To learn whether another control plane answers for a definition.
		cluster = append(cluster, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services"}, ResourceNames: []string{o.Service}, Verbs: []string{"get"}})
	}
	own = []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{o.Secret}, Verbs: []string{"get", "list", "watch", "update"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, ResourceNames: []string{o.Owner}, Verbs: []string{"get"}},
	}
	if o.Publish != "" {
		own = append(own,
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
			rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{o.Publish}, Verbs: []string{"get", "update"}},
		)
	}
	return cluster, own
}

// Rules are those of the controller's identity.
func Rules() (cluster, own []rbacv1.PolicyRule) { return ForController("", "").Rules() }

// InjectorRules are those of the identity of the pod webhook of its own.
// It also reads the roots that the controller has published in the same namespace.
func InjectorRules() (cluster, own []rbacv1.PolicyRule) {
	cluster, own = ForInjector("", "").Rules()
	return cluster, append(own, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{Bundle}, Verbs: []string{"get"}})
}
