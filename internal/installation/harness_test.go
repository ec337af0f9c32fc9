// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package installation_test

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/identity"
	"github.com/tulle-mesh/tulle/internal/installation"
	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/test/apiserver"
)

// The tests share one API server with one installation in it, of which each breaks a part, and mends it.
var server apiserver.Shared

func TestMain(m *testing.M) {
	kube.LogTo(slog.New(slog.DiscardHandler))
	os.Exit(server.Main(m))
}

const (
	system = "appmesh-system"
	asking = "shop"
	// injection is the label that asks for proxies.
	injection = "appmesh.k8s.aws/sidecarInjectorWebhook"
	far       = 50 * 365 * 24 * time.Hour
)

// lab is a cluster with an installation that has nothing wrong.
type lab struct {
	client.Client

	t *testing.T
	// connected are the addresses of proxies, and askErr what asking for them comes to.
	connected map[string]bool
	askErr    error
}

func newLab(t *testing.T) *lab {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme, coordinationv1.AddToScheme, discoveryv1.AddToScheme,
		v1beta2.AddToScheme, rbacv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.Get(t).Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	k := &lab{Client: c, t: t, connected: map[string]bool{"10.0.0.1": true}}
	k.install()
	return k
}

// install makes what the chart and the control plane make, and a pod of the mesh.
func (k *lab) install() {
	k.t.Helper()
	k.make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}})
	k.make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: asking, Labels: map[string]string{injection: "enabled"}}})
	k.make(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plain"}})
	k.make(deployment(system, "appmesh-controller", "ghcr.io/tulle-mesh/tulle:v1.20.0"))
	controller := pod(system, "appmesh-controller-0", map[string]string{"app.kubernetes.io/name": "appmesh-controller"}, container("controller", "ghcr.io/tulle-mesh/tulle:v1.20.0"))
	k.make(controller)
	k.status(controller, "10.0.0.9", true)
	for _, service := range []string{"appmesh-controller-webhook-service", "appmesh-controller-xds"} {
		k.make(&corev1.Service{ObjectMeta: inside(system, service), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}}})
		slice := &discoveryv1.EndpointSlice{ObjectMeta: inside(system, service+"-a"), AddressType: discoveryv1.AddressTypeIPv4, Endpoints: []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.9"}}}}
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: service}
		k.make(slice)
	}
	k.make(&coordinationv1.Lease{ObjectMeta: inside(system, kube.LeaseName), Spec: coordinationv1.LeaseSpec{RenewTime: at(far)}})
	mutating, validating := webhooks("appmesh-controller", "appmesh-controller-webhook-service")
	k.make(mutating)
	k.make(validating)
	for _, name := range identity.ForController(system, "cluster.local").Definitions {
		d := k.definition(name)
		d.Spec.Conversion = conversion("appmesh-controller-webhook-service")
		if err := k.Update(k.t.Context(), d); err != nil {
			k.t.Fatal(err)
		}
	}
	k.certify()
	member := pod(asking, "web-1", nil, container("web", "web:1"), proxy("ghcr.io/tulle-mesh/tulle-agent:v1.20.0"))
	k.make(member)
	k.status(member, "10.0.0.1", true)
}

// certify has the control plane's own code make the certificate and tell the API server of it.
func (k *lab) certify() {
	k.t.Helper()
	o := identity.ForController(system, "cluster.local")
	o.Config, o.Clock, o.Logger = server.Get(k.t).Config, clock.Real{}, slog.New(slog.DiscardHandler)
	i, err := identity.New(o)
	if err != nil {
		k.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(k.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- i.Run(ctx) }()
	k.eventually("a certificate that all trust", func() bool {
		select {
		case <-i.Ready():
			return len(i.Pending()) == 0
		default:
			return false
		}
	})
	cancel()
	if err := <-ended; err != nil {
		k.t.Fatal(err)
	}
}

func (k *lab) eventually(what string, holds func() bool) {
	k.t.Helper()
	for range 600 {
		if holds() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	k.t.Fatalf("%s did not come about", what)
}

// check looks at the cluster as it is, at a time from now.
func (k *lab) check(later time.Duration) []string {
	k.t.Helper()
	found, err := installation.Check(k.t.Context(), installation.Options{
		Config: server.Get(k.t).Config, System: system, Now: clock.Real{}.Now().Add(later),
		Proxies: func(context.Context) (map[string]bool, error) { return maps.Clone(k.connected), k.askErr },
	})
	if err != nil {
		k.t.Fatal(err)
	}
	lines := make([]string, 0, len(found))
	for _, f := range found {
		lines = append(lines, fmt.Sprintf("%s %s %s: %s | %s", f.Severity, f.Reason, f.Object, f.Message, f.Mend))
	}
	return lines
}

func (k *lab) make(o client.Object) {
	k.t.Helper()
	if err := k.Create(k.t.Context(), o); err != nil {
		k.t.Fatal(err)
	}
}

// status says that a pod runs, since yesterday.
func (k *lab) status(p *corev1.Pod, address string, ready bool) {
	k.t.Helper()
	state := corev1.ConditionFalse
	if ready {
		state = corev1.ConditionTrue
	}
	p.Status = corev1.PodStatus{
		Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}}, StartTime: new(metav1.NewTime(clock.Real{}.Now().Add(-24 * time.Hour))),
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: state, Reason: "ContainersNotReady"}},
	}
	for i := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{Name: p.Spec.Containers[i].Name, Ready: ready})
	}
	if err := k.Status().Update(k.t.Context(), p); err != nil {
		k.t.Fatal(err)
	}
}

func (k *lab) definition(name string) *apiextensionsv1.CustomResourceDefinition {
	k.t.Helper()
	d := &apiextensionsv1.CustomResourceDefinition{}
	if err := k.Get(context.Background(), client.ObjectKey{Name: name}, d); err != nil {
		k.t.Fatal(err)
	}
	return d
}

func inside(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func at(later time.Duration) *metav1.MicroTime {
	return new(metav1.NewMicroTime(clock.Real{}.Now().Add(later)))
}

func container(name, image string) corev1.Container {
	return corev1.Container{Name: name, Image: image}
}

func proxy(image string) corev1.Container {
	return corev1.Container{Name: "envoy", Image: image, Env: []corev1.EnvVar{{Name: "APPMESH_VIRTUAL_NODE_NAME", Value: "mesh/m/virtualNode/web"}}}
}

func pod(namespace, name string, labels map[string]string, containers ...corev1.Container) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: inside(namespace, name), Spec: corev1.PodSpec{Containers: containers}}
	p.Labels = labels
	return p
}

func deployment(namespace, name, image string) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": name}
	return &appsv1.Deployment{ObjectMeta: inside(namespace, name), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{container("controller", image)}}},
	}}
}

// webhooks are a chart's, of one kind and pods. Nobody answers here, so they are asked for nothing.
func webhooks(name, service string) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	never := []admissionregistrationv1.MatchCondition{{Name: "never", Expression: "false"}}
	rule := func(group, version, resource string) []admissionregistrationv1.RuleWithOperations {
		return []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
		}}
	}
	call := func(path string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: system, Name: service, Path: &path}}
	}
	meta := metav1.ObjectMeta{Name: name, Labels: map[string]string{"app.kubernetes.io/name": name}}
	none := new(admissionregistrationv1.SideEffectClassNone)
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{
		{Name: "mpod.appmesh.k8s.aws", ClientConfig: call("/mutate-v1-pod"), Rules: rule("", "v1", "pods")},
		{Name: "mmesh.appmesh.k8s.aws", ClientConfig: call("/m"), Rules: rule("appmesh.k8s.aws", "v1beta2", "meshes")},
	}}
	for i := range mutating.Webhooks {
		w := &mutating.Webhooks[i]
		w.MatchConditions, w.SideEffects, w.AdmissionReviewVersions = never, none, []string{"v1"}
	}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "vmesh.appmesh.k8s.aws", ClientConfig: call("/v"), Rules: rule("appmesh.k8s.aws", "v1beta2", "meshes"),
		MatchConditions: never, SideEffects: none, AdmissionReviewVersions: []string{"v1"},
	}}}
	return mutating, validating
}

func conversion(service string) *apiextensionsv1.CustomResourceConversion {
	return &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"},
		ClientConfig:             &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: system, Name: service, Path: new("/convert")}},
	}}
}

// change writes an object with a change, and as it was when the test ends.
func change[T client.Object](k *lab, o T, f func(T)) {
	k.t.Helper()
	key := client.ObjectKeyFromObject(o)
	if err := k.Get(k.t.Context(), key, o); err != nil {
		k.t.Fatal(err)
	}
	before, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		k.t.Fatalf("%T", o)
	}
	f(o)
	if err := k.Update(k.t.Context(), o); err != nil {
		k.t.Fatal(err)
	}
	k.t.Cleanup(func() {
		before.SetResourceVersion("")
		now, ok := before.DeepCopyObject().(client.Object)
		if !ok || k.Get(context.Background(), key, now) != nil {
			k.t.Errorf("%T %s cannot be mended", o, key)
			return
		}
		before.SetResourceVersion(now.GetResourceVersion())
		if err := k.Update(context.Background(), before); err != nil {
			k.t.Error(err)
		}
	})
}

// add makes an object that is gone when the test ends, with the address and readiness of a pod.
func (k *lab) add(o client.Object) {
	k.t.Helper()
	k.make(o)
	k.t.Cleanup(func() {
		// A pod without a kubelet goes only at once.
		if err := k.Delete(context.Background(), o, client.GracePeriodSeconds(0)); err != nil {
			k.t.Error(err)
		}
	})
}

// remove deletes an object, which is made again when the test ends.
func (k *lab) remove(o client.Object) {
	k.t.Helper()
	if err := k.Get(k.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		k.t.Fatal(err)
	}
	again, ok := o.DeepCopyObject().(client.Object)
	if !ok {
		k.t.Fatalf("%T", o)
	}
	if err := k.Delete(k.t.Context(), o, client.GracePeriodSeconds(0)); err != nil {
		k.t.Fatal(err)
	}
	k.eventually("its end", func() bool {
		return apierrors.IsNotFound(k.Get(k.t.Context(), client.ObjectKeyFromObject(o), o))
	})
	gone := again.DeepCopyObject()
	k.t.Cleanup(func() {
		again.SetResourceVersion("")
		again.SetUID("")
		if err := k.Create(context.Background(), again); err != nil {
			k.t.Error(err)
		}
		if p, ok := gone.(*corev1.Pod); ok {
			made, isPod := again.(*corev1.Pod)
			if !isPod {
				return
			}
			made.Status = p.Status
			if err := k.Status().Update(context.Background(), made); err != nil {
				k.t.Error(err)
			}
		}
	})
}

// names are the keys of a map, sorted.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// otherAuthority is somebody else's certificate authority.
const otherAuthority = `-----BEGIN CERTIFICATE-----
MIIBeDCCAR2gAwIBAgIUDukFPMi7JvZQ0bFcdyCRjYdrRPMwCgYIKoZIzj0EAwIw
EDEOMAwGA1UEAwwFb3RoZXIwIBcNMjYxMTMwMTEwMjM0WhgPMjEyNjExMDYxMTAy
MzRaMBAxDjAMBgNVBAMMBW90aGVyMFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE
Rs+JRr1AyXtuuaUkzlZAKK7/b3R7IqitG+F/jO0m5yj6ll3ZYMF5fbeM+nntVAXp
tSPX/Pb6XIrxcYsFj+wmg6NTMFEwHQYDVR0OBBYEFIjy2ukXY0Cl9NShrmVacSuz
/fA6MB8GA1UdIwQYMBaAFIjy2ukXY0Cl9NShrmVacSuz/fA6MA8GA1UdEwEB/wQF
MAMBAf8wCgYIKoZIzj0EAwIDSQAwRgIhAK3Po2XpmfOQJrWhwhyOq8Kz62ZmoCPz
N6zQ6Jzd328HAiEA9HHHzZ8fM0MYQYOyUMaI3Al9NrHhX4X/iZK3O122vxg=
-----END CERTIFICATE-----`
