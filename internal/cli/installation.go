// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// The reasons of findings on the installation itself.
const (
	reasonNotInstalled mesh.Reason = "NotInstalled"
	reasonNotRunning   mesh.Reason = "NotRunning"
	reasonOutdated     mesh.Reason = "Outdated"
	reasonNoCA         mesh.Reason = "NoCertificate"
	reasonNotReported  mesh.Reason = "NotReported"
)

// checkCluster says what is wrong with an installation and with the objects in it.
func checkCluster(ctx context.Context, env Env, f *clusterFlags, out *format) error {
	cluster, err := f.open()
	if err != nil {
		return err
	}
	findings, err := cluster.installation(ctx, f.system)
	if err != nil {
		return err
	}
	count := 0
	if len(findings) == 0 || findings[0].Reason != reasonNotInstalled {
		list, err := cluster.resources(ctx, "", "")
		if err != nil {
			return err
		}
		count = len(list)
		for i := range list {
			findings = append(findings, list[i].findings()...)
		}
	}
	findings = mesh.SortFindings(findings)
	return writeCheck(env, out, plural(count, "object")+" in the cluster", findings)
}

// installation looks at what the chart installs: definitions, replicas, webhooks.
func (a *asked) installation(ctx context.Context, system string) ([]mesh.Finding, error) {
	if err := apiextensionsv1.AddToScheme(a.Scheme()); err != nil {
		return nil, err
	}
	var findings []mesh.Finding
	for _, kind := range kube.Plurals() {
		found, err := a.definition(ctx, kind+"."+v1beta2.Group)
		if err != nil {
			return nil, err
		}
		findings = append(findings, found...)
	}
	var pods corev1.PodList
	if err := a.List(ctx, &pods, client.InNamespace(system), client.MatchingLabels{controllerLabel: controllerName}); err != nil {
		return nil, fmt.Errorf("listing the control plane's pods: %w", err)
	}
	if len(pods.Items) == 0 {
		findings = append(findings, mesh.Finding{
			Severity: mesh.SeverityError, Reason: reasonNotRunning, Object: mesh.Source{Kind: "Namespace", Name: system},
			Message: "no pod of the control plane runs in this namespace, so nothing of what is applied comes into force",
			Mend:    "install the chart appmesh-controller there, or name its namespace with --system-namespace",
		})
	}
	for i := range pods.Items {
		if pod := &pods.Items[i]; !isReady(pod) {
			findings = append(findings, mesh.Finding{
				Severity: mesh.SeverityError, Reason: reasonNotRunning, Object: mesh.Source{Kind: "Pod", Namespace: system, Name: pod.Name},
				Message: fmt.Sprintf("this replica of the control plane is not ready (phase %s)", pod.Status.Phase),
				Mend:    fmt.Sprintf("see 'kubectl -n %s describe pod %s' and its log", system, pod.Name),
			})
		}
	}
	webhooks, err := a.webhooks(ctx, system)
	return append(findings, webhooks...), err
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// definition looks at one CustomResourceDefinition.
func (a *asked) definition(ctx context.Context, name string) ([]mesh.Finding, error) {
	finding := mesh.Finding{
		Severity: mesh.SeverityError, Reason: reasonNotInstalled, Object: mesh.Source{Kind: "CustomResourceDefinition", Name: name},
		Message: "the cluster does not know this kind", Mend: "apply the CustomResourceDefinitions that come with the chart appmesh-controller",
	}
	definition := &apiextensionsv1.CustomResourceDefinition{}
	err := a.Get(ctx, client.ObjectKey{Name: name}, definition)
	if apierrors.IsNotFound(err) {
		return []mesh.Finding{finding}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the definition of %s: %w", name, err)
	}
	for _, version := range definition.Spec.Versions {
		if version.Name == v1beta2.Version && version.Served {
			return nil, nil
		}
	}
	finding.Reason, finding.Message = reasonOutdated, "this definition does not serve "+v1beta2.Version+": it is older than the control plane"
	return []mesh.Finding{finding}, nil
}

// webhooks looks for webhooks of the control plane that the API server cannot trust yet.
func (a *asked) webhooks(ctx context.Context, system string) ([]mesh.Finding, error) {
	api := a.clients.AdmissionregistrationV1()
	mutating, err := api.MutatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing webhooks: %w", err)
	}
	validating, err := api.ValidatingWebhookConfigurations().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing webhooks: %w", err)
	}
	var findings []mesh.Finding
	look := func(kind, name, namespace string, bundle []byte) {
		if namespace != system || len(bundle) > 0 {
			return
		}
		findings = append(findings, mesh.Finding{
			Severity: mesh.SeverityError, Reason: reasonNoCA, Object: mesh.Source{Kind: kind, Name: name},
			Message: "this webhook has no caBundle, so the API server cannot call it, and refuses what it guards",
			Mend:    "the control plane fills it in once it runs; see its log",
		})
	}
	for i := range mutating.Items {
		for _, w := range mutating.Items[i].Webhooks {
			if w.ClientConfig.Service != nil {
				look("MutatingWebhookConfiguration", mutating.Items[i].Name, w.ClientConfig.Service.Namespace, w.ClientConfig.CABundle)
			}
		}
	}
	for i := range validating.Items {
		for _, w := range validating.Items[i].Webhooks {
			if w.ClientConfig.Service != nil {
				look("ValidatingWebhookConfiguration", validating.Items[i].Name, w.ClientConfig.Service.Namespace, w.ClientConfig.CABundle)
			}
		}
	}
	return mesh.SortFindings(findings), nil
}

// findings are what a resource's conditions say is wrong.
func (r *resource) findings() []mesh.Finding {
	source := mesh.Source{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	if r.Observed != r.Generation {
		return []mesh.Finding{{
			Severity: mesh.SeverityWarning, Reason: reasonNotReported, Object: source,
			Message: fmt.Sprintf("the control plane has reported on generation %d of this object, which is at %d", r.Observed, r.Generation),
			Mend:    "wait some seconds; if it stays so, see whether a replica of the control plane is ready and leads",
		}}
	}
	var list []mesh.Finding
	for _, kind := range []v1beta2.ConditionType{v1beta2.Accepted, v1beta2.ResolvedRefs, v1beta2.Programmed} {
		if c := r.condition(kind); c != nil && c.Status != metav1.ConditionTrue && c.Reason != nil && c.Message != nil {
			list = append(list, mesh.Finding{Severity: mesh.SeverityError, Reason: mesh.Reason(*c.Reason), Object: source, Field: string(kind), Message: *c.Message})
		}
	}
	return list
}
