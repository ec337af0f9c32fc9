// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package installation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

const (
	kindMutating   = "MutatingWebhookConfiguration"
	kindValidating = "ValidatingWebhookConfiguration"
	// controllerName and injectorName are those of the charts' Deployments, and of their webhook configurations.
	controllerName = "appmesh-controller"
	injectorName   = "appmesh-inject"
	// nameLabel is on all that the charts install.
	nameLabel = "app.kubernetes.io/name"
)

// webhook is what both sorts of configurations say of one.
type webhook struct {
	config string
	at     mesh.Source
	labels map[string]string
	name   string
	client admissionregistrationv1.WebhookClientConfig
	rules  []admissionregistrationv1.RuleWithOperations
	// ignored says that the API server goes on without an answer.
	ignored bool
}

func (k *checkup) webhooks() []webhook {
	var all []webhook
	for i := range k.mutating {
		c := &k.mutating[i]
		for j := range c.Webhooks {
			w := &c.Webhooks[j]
			all = append(all, webhook{c.Name, mesh.Source{Kind: kindMutating, Name: c.Name}, c.Labels, w.Name, w.ClientConfig, w.Rules, ignores(w.FailurePolicy)})
		}
	}
	for i := range k.validating {
		c := &k.validating[i]
		for j := range c.Webhooks {
			w := &c.Webhooks[j]
			all = append(all, webhook{c.Name, mesh.Source{Kind: kindValidating, Name: c.Name}, c.Labels, w.Name, w.ClientConfig, w.Rules, ignores(w.FailurePolicy)})
		}
	}
	return all
}

func ignores(p *admissionregistrationv1.FailurePolicyType) bool {
	return p != nil && *p == admissionregistrationv1.Ignore
}

// ours says that the webhook is one of the charts'.
func (w *webhook) ours() bool {
	return (w.config == controllerName || w.config == injectorName) && w.labels[nameLabel] == w.config && !w.old()
}

// old says that the webhook is the older injector's, which was served at the root.
func (w *webhook) old() bool {
	service := w.client.Service
	return w.takesPods() && service != nil && (service.Path == nil || *service.Path == "" || *service.Path == "/") &&
		(strings.Contains(w.config, "appmesh-inject") || strings.Contains(w.config, "app-mesh-inject"))
}

func (w *webhook) takesPods() bool {
	return slices.ContainsFunc(w.rules, func(r admissionregistrationv1.RuleWithOperations) bool { return slices.Contains(r.Resources, "pods") })
}

// appMesh says that the webhook is for App Mesh's objects or pods, whoever made it.
func (w *webhook) appMesh() bool {
	return strings.HasSuffix(w.name, "."+v1beta2.Group) || w.old() || slices.ContainsFunc(w.rules, func(r admissionregistrationv1.RuleWithOperations) bool {
		return slices.Contains(r.APIGroups, v1beta2.Group)
	})
}

// injects says that the webhook puts proxies into pods.
func (w *webhook) injects() bool {
	return w.takesPods() && (w.ours() || strings.HasPrefix(w.name, "mpod"))
}

// checkWebhooks looks for the charts' webhooks, whether they can be called, and for those of others.
func (k *checkup) checkWebhooks(ctx context.Context) error {
	if !k.unread["mutatingwebhookconfigurations"] && !slices.ContainsFunc(k.mutating, func(c admissionregistrationv1.MutatingWebhookConfiguration) bool { return c.Name == controllerName }) {
		k.wrong(ReasonNotInstalled, mesh.Source{Kind: kindMutating, Name: controllerName},
			"the webhooks that fill in defaults and put proxies into pods are not there: pods start without a proxy", k.installChart())
	}
	if !k.unread["validatingwebhookconfigurations"] && !slices.ContainsFunc(k.validating, func(c admissionregistrationv1.ValidatingWebhookConfiguration) bool { return c.Name == controllerName }) {
		k.wrong(ReasonNotInstalled, mesh.Source{Kind: kindValidating, Name: controllerName},
			"the webhooks that check objects are not there: mistakes are found late, in conditions alone", k.installChart())
	}
	told := map[mesh.Source]bool{}
	for _, w := range k.webhooks() {
		if told[w.at] || !w.appMesh() {
			continue
		}
		told[w.at] = true // the webhooks of a configuration share their fate
		if !w.ours() {
			k.wrong(ReasonLeftOver, w.at, fmt.Sprintf("this is the original App Mesh installation's (webhook %s): it asks a controller that is no longer meant to answer, and refuses objects or changes pods beside the control plane", w.name),
				fmt.Sprintf("remove the chart that it came with (helm list -A), or: kubectl delete %s %s", strings.ToLower(w.at.Kind), w.config))
			continue
		}
		harm := "objects and pods of meshed namespaces are refused"
		if w.ignored {
			harm = "pods start without a proxy"
		}
		if err := k.checkClient(ctx, callee{at: w.at, service: admissionReference(w.client.Service), bundle: w.client.CABundle, what: "these webhooks", harm: harm}); err != nil {
			return err
		}
	}
	return nil
}

// installChart is the command that puts the control plane in place.
func (k *checkup) installChart() string {
	return fmt.Sprintf("helm upgrade -i %s eks/%s -n %s", controllerName, controllerName, k.System)
}

// callee is what the API server calls.
type callee struct {
	at      mesh.Source
	service *client.ObjectKey
	bundle  []byte
	// what is called, and harm what comes of it if nobody answers.
	what, harm string
}

func reference(s *apiextensionsv1.ServiceReference) *client.ObjectKey {
	if s == nil {
		return nil
	}
	return &client.ObjectKey{Namespace: s.Namespace, Name: s.Name}
}

func admissionReference(s *admissionregistrationv1.ServiceReference) *client.ObjectKey {
	if s == nil {
		return nil
	}
	return &client.ObjectKey{Namespace: s.Namespace, Name: s.Name}
}

// checkClient says whether the API server can call somebody: whom to trust, and who answers.
func (k *checkup) checkClient(ctx context.Context, c callee) error {
	if c.service == nil {
		return nil // a URL outside the cluster is the operator's own
	}
	if len(c.bundle) == 0 {
		k.wrong(ReasonCertificate, c.at, fmt.Sprintf("the API server is not told which certificate to trust for %s (no caBundle): %s", c.what, c.harm),
			fmt.Sprintf("the control plane fills it in when it starts: kubectl -n %s logs deploy/%s", k.System, controllerName))
	}
	if c.service.Namespace == k.System && c.service.Name != injectorName && !k.running() {
		return nil // that is what is wrong, and is said elsewhere
	}
	service := &corev1.Service{}
	err := k.Get(ctx, *c.service, service)
	if apierrors.IsNotFound(err) {
		k.wrong(ReasonUnreachable, c.at, fmt.Sprintf("nobody answers for %s: the Service %s, which is asked, does not exist: %s", c.what, c.service, c.harm),
			k.installChart()+", or, if the control plane is in another namespace, name it with --system-namespace")
		return nil
	}
	if err != nil {
		return k.unreadable("services", err)
	}
	var list discoveryv1.EndpointSliceList
	if err := k.List(ctx, &list, client.InNamespace(c.service.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: c.service.Name}); err != nil {
		return k.unreadable("endpointslices", err)
	}
	for i := range list.Items {
		for _, e := range list.Items[i].Endpoints {
			if e.Conditions.Ready == nil || *e.Conditions.Ready {
				return nil
			}
		}
	}
	k.wrong(ReasonUnreachable, c.at, fmt.Sprintf("nobody is ready behind the Service %s, which answers for %s: %s", c.service, c.what, c.harm),
		fmt.Sprintf("kubectl -n %s get pods,endpointslices; kubectl -n %s describe service %s", c.service.Namespace, c.service.Namespace, c.service.Name))
	return nil
}
