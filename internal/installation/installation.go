// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package installation looks at an installation of the control plane in a cluster and says, in words for somebody who is new to it, what is wrong, why it
// matters, and the command that mends it. It only reads. The command line's check verb calls it.
package installation

import (
	"context"
	"errors"
	"fmt"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// The reasons of findings on an installation.
const (
	// ReasonNotInstalled is something that the chart installs and that is not there.
	ReasonNotInstalled mesh.Reason = "NotInstalled"
	// ReasonNotRunning is a control plane that does not work.
	ReasonNotRunning mesh.Reason = "NotRunning"
	// ReasonOutdated is something that is older than the control plane.
	ReasonOutdated mesh.Reason = "Outdated"
	// ReasonCertificate is a certificate that is missing, damaged, over, or not trusted where it must be.
	ReasonCertificate mesh.Reason = "Certificate"
	// ReasonUnreachable is a webhook whose Service does not exist or has nobody behind it.
	ReasonUnreachable mesh.Reason = "Unreachable"
	// ReasonLeftOver is something of the original App Mesh installation that is still there.
	ReasonLeftOver mesh.Reason = "LeftOver"
	// ReasonTwoControllers is a second control plane for the same objects.
	ReasonTwoControllers mesh.Reason = "TwoControllers"
	// ReasonStuck is an object that is being deleted and does not go.
	ReasonStuck mesh.Reason = "Stuck"
	// ReasonNoSidecar is a pod that should have a proxy and has none.
	ReasonNoSidecar mesh.Reason = "NoSidecar"
	// ReasonRefused is a workload whose pods the pod webhook does not let start.
	ReasonRefused mesh.Reason = "Refused"
	// ReasonNotConnected is a proxy that no replica knows.
	ReasonNotConnected mesh.Reason = "NotConnected"
	// ReasonNeverReady is a pod that waits for what will not come.
	ReasonNeverReady mesh.Reason = "NeverReady"
	// ReasonNotChecked is something that could not be looked at.
	ReasonNotChecked mesh.Reason = "NotChecked"
)

// Options say what is looked at.
type Options struct {
	Config *rest.Config
	// System is the control plane's namespace.
	System string
	// Now is the time against which certificates and deletions are held.
	Now time.Time
	// Proxies returns the addresses of the pods whose proxies are connected, over all replicas. Nil leaves them out.
	Proxies func(context.Context) (map[string]bool, error)
}

// checkup is one look at a cluster. The lists are read once, and the pods, which are many, in pieces.
type checkup struct {
	Options
	client.Client

	definitions []apiextensionsv1.CustomResourceDefinition
	mutating    []admissionregistrationv1.MutatingWebhookConfiguration
	validating  []admissionregistrationv1.ValidatingWebhookConfiguration
	namespaces  []corev1.Namespace
	pods        []corev1.Pod
	deployments []appsv1.Deployment
	leases      []coordinationv1.Lease
	// unread are the kinds that could not be read, for want of a right.
	unread map[string]bool

	findings []mesh.Finding
}

// Check looks at all of an installation. Findings are sorted. What may not be read is a finding; an API server that does not answer is an error.
func Check(ctx context.Context, o Options) ([]mesh.Finding, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(o.Config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("the cluster does not answer: %w", err)
	}
	k := &checkup{Options: o, Client: c, unread: map[string]bool{}}
	if err := k.read(ctx); err != nil {
		return nil, err
	}
	for _, check := range []func(context.Context) error{
		k.checkDefinitions, k.checkReplicas, k.checkWebhooks, k.checkCertificates, k.checkOthers, k.checkStuck, k.checkNamespaces, k.checkPods, k.checkRefused,
	} {
		if err := check(ctx); err != nil {
			return nil, err
		}
	}
	return mesh.SortFindings(k.findings), nil
}

func newScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme, coordinationv1.AddToScheme, discoveryv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, err
		}
	}
	metav1.AddToGroupVersion(scheme, metav1.SchemeGroupVersion)
	return scheme, nil
}

// page is how many objects are asked for at once.
const page = 500

// read reads the lists that more than one check needs.
func (k *checkup) read(ctx context.Context) error {
	var definitions apiextensionsv1.CustomResourceDefinitionList
	var mutating admissionregistrationv1.MutatingWebhookConfigurationList
	var validating admissionregistrationv1.ValidatingWebhookConfigurationList
	var namespaces corev1.NamespaceList
	var pods corev1.PodList
	var deployments appsv1.DeploymentList
	var leases coordinationv1.LeaseList
	err := errors.Join(
		k.list(ctx, "customresourcedefinitions", &definitions, func() { k.definitions = append(k.definitions, definitions.Items...) }),
		k.list(ctx, "mutatingwebhookconfigurations", &mutating, func() { k.mutating = append(k.mutating, mutating.Items...) }),
		k.list(ctx, "validatingwebhookconfigurations", &validating, func() { k.validating = append(k.validating, validating.Items...) }),
		k.list(ctx, "namespaces", &namespaces, func() { k.namespaces = append(k.namespaces, namespaces.Items...) }),
		k.list(ctx, "pods", &pods, func() { k.pods = append(k.pods, pods.Items...) }),
		k.list(ctx, "deployments", &deployments, func() { k.deployments = append(k.deployments, deployments.Items...) }),
		k.list(ctx, "leases", &leases, func() { k.leases = append(k.leases, leases.Items...) }),
	)
	return err
}

// list reads a whole list page by page.
func (k *checkup) list(ctx context.Context, what string, into client.ObjectList, each func()) error {
	for next := ""; ; {
		err := k.List(ctx, into, client.Limit(page), client.Continue(next))
		if err != nil {
			return k.unreadable(what, err)
		}
		each()
		if next = into.GetContinue(); next == "" {
			return nil
		}
	}
}

// unreadable makes a finding of a right that is missing.
func (k *checkup) unreadable(what string, err error) error {
	if !apierrors.IsForbidden(err) {
		return fmt.Errorf("reading %s: %w", what, err)
	}
	if !k.unread[what] {
		k.unread[what] = true
		k.add(mesh.Finding{
			Severity: mesh.SeverityWarning, Reason: ReasonNotChecked,
			Message: "you may not read " + what + ", so what depends on them was not checked",
			Mend:    "run this as a user who may: kubectl auth can-i list " + what + " -A",
		})
	}
	return nil
}

func (k *checkup) add(f mesh.Finding) { k.findings = append(k.findings, f) }

func (k *checkup) wrong(reason mesh.Reason, object mesh.Source, message, mend string) {
	k.add(mesh.Finding{Severity: mesh.SeverityError, Reason: reason, Object: object, Message: message, Mend: mend})
}

func (k *checkup) odd(reason mesh.Reason, object mesh.Source, message, mend string) {
	k.add(mesh.Finding{Severity: mesh.SeverityWarning, Reason: reason, Object: object, Message: message, Mend: mend})
}

// settled is how long something may take before it counts as stuck.
const settled = time.Minute

func (k *checkup) longAgo(t *metav1.Time) bool { return t != nil && k.Now.Sub(t.Time) > settled }
