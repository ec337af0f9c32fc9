// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package charts_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Names of the cluster's own make these tests take turns: webhook configurations and cluster roles exist once.

//nolint:paralleltest // see above
func TestTheAPIServerTakesEveryManifest(t *testing.T) {
	c := newCluster(t, "appmesh-system")
	defer c.gone()
	for name, args := range map[string][]string{
		controllerChart: {"-f", "testdata/appmesh-controller/two replicas with all that is optional.values.yaml", "--set", "serviceMonitor.enabled=false"},
		injectChart:     {"-f", "testdata/appmesh-inject/a mesh of the walkthrough.values.yaml", "--set", "replicaCount=2"},
	} {
		for _, o := range c.template(name, args...) {
			if o.GetKind() == "Deployment" {
				restricted(t, o.GetName(), o.Object)
			}
			if err := c.Create(t.Context(), o, client.DryRunAll, client.FieldValidation("Strict")); err != nil {
				t.Errorf("%s %s: %v", o.GetKind(), o.GetName(), err)
			}
		}
	}
}

// restricted fails the test for a container that could do more than it needs.
func restricted(t *testing.T, name string, object map[string]any) {
	t.Helper()
	deployment := appsv1.Deployment{}
	intoTyped(t, object, &deployment)
	pod := deployment.Spec.Template.Spec
	container := pod.Containers[0]
	if pod.SecurityContext == nil || !*pod.SecurityContext.RunAsNonRoot || container.SecurityContext == nil || !*container.SecurityContext.ReadOnlyRootFilesystem ||
		*container.SecurityContext.AllowPrivilegeEscalation || len(container.SecurityContext.Capabilities.Drop) != 1 {
		t.Errorf("Deployment %s is not restricted: %+v %+v", name, pod.SecurityContext, container.SecurityContext)
	}
}

//nolint:paralleltest // see above
func TestUpgradeKeepsWhatTheControllerPutIn(t *testing.T) {
	c := newCluster(t, "upgrade")
	defer c.gone()
	c.upgrade(controllerChart)
	c.injectCA()
	c.upgrade(controllerChart, "--set", "replicaCount=2,region=eu-west-1")
	c.wantCA("after an upgrade")
	c.run("rollback", controllerChart, "1", "-n", c.namespace, "--no-hooks")
	c.wantCA("after a rollback")
	deployment := c.deployment()
	if got := *deployment.Spec.Replicas; got != 1 {
		t.Errorf("%d replicas after the rollback, want 1", got)
	}
	c.upgrade(controllerChart, "--reuse-values")
	c.wantCA("after an upgrade with --reuse-values")
	c.run("uninstall", controllerChart, "-n", c.namespace, "--no-hooks")
	c.nothingLeft()
}

//nolint:paralleltest // see above
func TestTheOriginalIsUpgradedInPlace(t *testing.T) {
	for name, words := range map[string][]string{
		"original-1.13": {}, "original-1.13 with the values of before": {"--reuse-values"}, "original-0.6": {},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, "original-"+strings.NewReplacer(".", "-", " ", "-").Replace(name))
			defer c.gone()
			chart, _, _ := strings.Cut(name, " ")
			c.run("upgrade", "-i", controllerChart, "testdata/"+chart, "-n", c.namespace)
			before := c.deployment()
			c.upgrade(controllerChart, words...)
			after := c.deployment()
			if before.UID != after.UID {
				t.Error("the Deployment was made anew instead of upgraded")
			}
			if diff := cmp.Diff(before.Spec.Selector, after.Spec.Selector); diff != "" {
				t.Errorf("selector (-before +after):\n%s", diff)
			}
			pod := after.Spec.Template.Spec
			if len(pod.Containers) != 1 || pod.Containers[0].Image != "ghcr.io/tulle-mesh/tulle:v1.20.0" || len(pod.Containers[0].Command) != 0 || len(pod.Volumes) != 0 {
				t.Errorf("something of the original is left in the pods: %+v", pod)
			}
			c.absent(&corev1.Secret{}, "appmesh-controller-webhook-server-cert")
			c.absent(&rbacv1.ClusterRole{}, "appmesh-controller-role")
			c.absent(&admissionregistrationv1.MutatingWebhookConfiguration{}, "appmesh-controller-mutating-webhook-configuration")
			c.absent(&admissionregistrationv1.ValidatingWebhookConfiguration{}, "appmesh-controller-validating-webhook-configuration")
			c.upgrade(controllerChart, "--reuse-values")
			c.run("rollback", controllerChart, "1", "-n", c.namespace, "--no-hooks")
			c.upgrade(controllerChart)
			c.run("uninstall", controllerChart, "-n", c.namespace, "--no-hooks")
			c.nothingLeft()
		})
	}
}

// The walkthrough says serviceAccount.create=false, since a tool of AWS's makes the account.
//
//nolint:paralleltest // see above
func TestTheServiceAccountOfTheWalkthrough(t *testing.T) {
	const given = "serviceAccount.create=false,serviceAccount.name=appmesh-controller"
	t.Run("is made where there is none, and stays", func(t *testing.T) {
		c := newCluster(t, "account-absent")
		defer c.gone()
		for range 3 {
			said := c.upgrade(controllerChart, "--set", given)
			if !strings.Contains(said, "no AWS permissions are needed") {
				t.Errorf("nothing said of the ServiceAccount:\n%s", said)
			}
			if err := c.Get(t.Context(), client.ObjectKey{Namespace: c.namespace, Name: "appmesh-controller"}, &corev1.ServiceAccount{}); err != nil {
				t.Fatal(err)
			}
		}
		c.run("uninstall", controllerChart, "-n", c.namespace, "--no-hooks")
		c.absent(&corev1.ServiceAccount{}, "appmesh-controller")
	})
	t.Run("is left alone where somebody else made it", func(t *testing.T) {
		c := newCluster(t, "account-present")
		defer c.gone()
		theirs := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "appmesh-controller", Namespace: c.namespace}}
		if err := c.Create(t.Context(), theirs); err != nil {
			t.Fatal(err)
		}
		c.upgrade(controllerChart, "--set", given)
		c.upgrade(controllerChart, "--set", given)
		c.run("uninstall", controllerChart, "-n", c.namespace, "--no-hooks")
		left := &corev1.ServiceAccount{}
		if err := c.Get(t.Context(), client.ObjectKeyFromObject(theirs), left); err != nil || left.UID != theirs.UID || len(left.Annotations) != 0 {
			t.Errorf("the ServiceAccount was touched: %v, %+v", err, left.ObjectMeta)
		}
	})
}

//nolint:paralleltest // see above
func TestNotesListWhatHasNoEffect(t *testing.T) {
	c := newCluster(t, "notes")
	defer c.gone()
	notes := c.upgrade(controllerChart, "-f", "testdata/original-controller.yaml")
	for _, want := range []string{
		"useAwsDualStackEndpoint", "useAwsFIPSEndpoint", "cloudMapCustomHealthCheck.enabled", "cloudMapDNS.ttl", "rbac.pspEnabled", "enableCertManager",
		"sidecar.envoyAwsSecretAccessKey", "eks.amazonaws.com/role-arn", "sidecar.image: 840364872350", "init.image: 840364872350", "image: 840364872350",
	} {
		if !strings.Contains(notes, "- "+want) && !strings.Contains(notes, "annotations, "+want) {
			t.Errorf("the notes do not name %s:\n%s", want, notes)
		}
	}
	if notes := c.upgrade(controllerChart, "--reset-values"); strings.Contains(notes, "no effect") || strings.Contains(notes, "cannot run here") {
		t.Errorf("with nothing set the notes complain:\n%s", notes)
	}
	if notes := c.upgrade(injectChart, "-f", "testdata/original-inject.yaml", "--set", "mesh.create=false"); !strings.Contains(notes, "sidecar.image: 840364872350") {
		t.Errorf("the injector's notes do not name the image:\n%s", notes)
	}
}

func (c *cluster) deployment() *appsv1.Deployment {
	c.t.Helper()
	deployment := &appsv1.Deployment{}
	if err := c.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: controllerChart}, deployment); err != nil {
		c.t.Fatal(err)
	}
	return deployment
}

func (c *cluster) absent(o client.Object, name string) {
	c.t.Helper()
	key := client.ObjectKey{Name: name}
	if _, namespaced := o.(*rbacv1.ClusterRole); !namespaced {
		key.Namespace = c.namespace
	}
	switch o.(type) {
	case *admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration:
		key.Namespace = ""
	}
	if err := c.Get(c.t.Context(), key, o); !apierrors.IsNotFound(err) {
		c.t.Errorf("%T %s: want it gone, got %v", o, name, err)
	}
}

// injectCA does to the webhooks what the controller does.
func (c *cluster) injectCA() {
	c.t.Helper()
	mutating, validating := c.webhooks()
	for i := range mutating.Webhooks {
		mutating.Webhooks[i].ClientConfig.CABundle = []byte("-----BEGIN CERTIFICATE-----\nMA==\n-----END CERTIFICATE-----\n")
	}
	for i := range validating.Webhooks {
		validating.Webhooks[i].ClientConfig.CABundle = mutating.Webhooks[0].ClientConfig.CABundle
	}
	for _, o := range []client.Object{mutating, validating} {
		if err := c.Update(c.t.Context(), o); err != nil && !strings.Contains(err.Error(), "unable to load root certificates") {
			c.t.Fatal(err)
		}
	}
}

func (c *cluster) webhooks() (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	c.t.Helper()
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	for _, o := range []client.Object{mutating, validating} {
		if err := c.Get(c.t.Context(), client.ObjectKey{Name: controllerChart}, o); err != nil {
			c.t.Fatal(err)
		}
	}
	return mutating, validating
}

func (c *cluster) wantCA(when string) {
	c.t.Helper()
	mutating, validating := c.webhooks()
	if len(mutating.Webhooks) != 9 || len(validating.Webhooks) != 7 {
		c.t.Errorf("%s: %d and %d webhooks, want 9 and 7", when, len(mutating.Webhooks), len(validating.Webhooks))
	}
	for i := range mutating.Webhooks {
		if w := &mutating.Webhooks[i]; len(w.ClientConfig.CABundle) == 0 {
			c.t.Errorf("%s: webhook %s has lost its certificate authority", when, w.Name)
		}
	}
	for i := range validating.Webhooks {
		if w := &validating.Webhooks[i]; len(w.ClientConfig.CABundle) == 0 {
			c.t.Errorf("%s: webhook %s has lost its certificate authority", when, w.Name)
		}
	}
}

// nothingLeft fails the test for what a release leaves behind.
func (c *cluster) nothingLeft() {
	c.t.Helper()
	for _, list := range []client.ObjectList{
		&appsv1.DeploymentList{}, &corev1.ServiceList{}, &corev1.ServiceAccountList{}, &corev1.SecretList{}, &corev1.ConfigMapList{}, &rbacv1.RoleList{}, &rbacv1.RoleBindingList{},
	} {
		c.noneOf(list, client.InNamespace(c.namespace))
	}
	for _, list := range []client.ObjectList{
		&rbacv1.ClusterRoleList{}, &rbacv1.ClusterRoleBindingList{},
		&admissionregistrationv1.MutatingWebhookConfigurationList{}, &admissionregistrationv1.ValidatingWebhookConfigurationList{},
	} {
		c.noneOf(list, client.HasLabels{"app.kubernetes.io/managed-by"})
	}
}

func (c *cluster) noneOf(list client.ObjectList, options ...client.ListOption) {
	c.t.Helper()
	if err := c.List(c.t.Context(), list, options...); err != nil {
		c.t.Fatal(err)
	}
	for _, name := range names(c.t, list) {
		if name != "default" && name != "kube-root-ca.crt" {
			c.t.Errorf("%T: %s is left", list, name)
		}
	}
}

// gone takes the test's releases away, for the next one's sake.
func (c *cluster) gone() {
	for _, chart := range []string{injectChart, controllerChart} {
		_, _ = c.try("uninstall", chart, "-n", c.namespace, "--no-hooks", "--ignore-not-found")
	}
}
