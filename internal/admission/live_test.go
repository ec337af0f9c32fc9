// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/test/apiserver"
)

var server apiserver.Shared

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// api is a client of an API server that has the webhooks on.
type api struct {
	client.Client

	// warnings are what the server warned of, in order.
	warnings *warnings
	config   *rest.Config
}

type warnings struct {
	mu   sync.Mutex
	list []string
}

func (w *warnings) HandleWarningHeaderWithContext(_ context.Context, _ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, text)
}

func (w *warnings) take() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.list
	w.list = nil
	return list
}

// live starts an API server whose objects go through admission and conversion.
func live(t *testing.T) *api {
	t.Helper()
	config := rest.CopyConfig(server.Get(t).Config)
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		v1beta2.AddToScheme, corev1.AddToScheme, apiextensionsv1.AddToScheme, admissionregistrationv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	direct, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	hook := httptest.NewTLSServer(Handler(Options{
		Lookup: FromReader(direct), Logger: slog.New(slog.NewTextHandler(t.Output(), nil)), Clock: clock.Real{}, Settle: 1,
	}))
	t.Cleanup(hook.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	convert(t, direct, hook.URL+ConvertPath, ca)
	register(t, direct, hook.URL, ca)
	warned := &warnings{}
	config.WarningHandlerWithContext = warned
	warning, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &api{Client: warning, warnings: warned, config: config}
}

// convert tells the API server who converts.
func convert(t *testing.T, c client.Client, url string, ca []byte) {
	t.Helper()
	for _, name := range []string{"meshes", "virtualnodes", "virtualservices"} {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(t.Context(), client.ObjectKey{Name: name + ".appmesh.k8s.aws"}, definition); err != nil {
			t.Fatal(err)
		}
		definition.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{
			Strategy: apiextensionsv1.WebhookConverter,
			Webhook: &apiextensionsv1.WebhookConversion{
				ClientConfig:             &apiextensionsv1.WebhookClientConfig{URL: &url, CABundle: ca},
				ConversionReviewVersions: []string{"v1"},
			},
		}
		if err := c.Update(t.Context(), definition); err != nil {
			t.Fatal(err)
		}
	}
}

// register tells the API server whom to ask.
func register(t *testing.T, c client.Client, url string, ca []byte) {
	t.Helper()
	mutating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "tulle"}}
	validating := &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "tulle"}}
	plurals := map[string]string{
		kindMesh: "meshes", kindVirtualNode: "virtualnodes", kindVirtualService: "virtualservices", kindVirtualRouter: "virtualrouters",
		kindVirtualGateway: "virtualgateways", kindGatewayRoute: "gatewayroutes", kindBackendGroup: "backendgroups",
	}
	for _, kind := range kinds() {
		lower := strings.ToLower(kind)
		rules := []admissionregistrationv1.RuleWithOperations{{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{v1beta2.Group}, APIVersions: []string{v1beta2.Version}, Resources: []string{plurals[kind]}},
		}}
		mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{
			Name: "m" + lower + ".appmesh.k8s.aws", Rules: rules, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(url + MutatePath(kind)), CABundle: ca},
			SideEffects:  new(admissionregistrationv1.SideEffectClassNone), FailurePolicy: new(admissionregistrationv1.Fail),
			MatchPolicy: new(admissionregistrationv1.Equivalent),
		})
		validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{
			Name: "v" + lower + ".appmesh.k8s.aws", Rules: rules, AdmissionReviewVersions: []string{"v1"},
			ClientConfig: admissionregistrationv1.WebhookClientConfig{URL: new(url + ValidatePath(kind)), CABundle: ca},
			SideEffects:  new(admissionregistrationv1.SideEffectClassNone), FailurePolicy: new(admissionregistrationv1.Fail),
			MatchPolicy: new(admissionregistrationv1.Equivalent),
		})
	}
	for _, object := range []client.Object{mutating, validating} {
		if err := c.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Delete(context.Background(), object) })
	}
}

func object(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &out.Object); err != nil {
		t.Fatal(err)
	}
	return out
}

// create makes an object, once the API server has heard of the webhooks.
func (a *api) create(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	out := object(t, text)
	if err := a.Create(t.Context(), out); err != nil {
		t.Fatalf("creating %s: %v", out.GetName(), err)
	}
	return out
}

// as reads an object in a version of the API.
func (a *api) as(t *testing.T, of *unstructured.Unstructured, version string) *unstructured.Unstructured {
	t.Helper()
	out := &unstructured.Unstructured{}
	out.SetAPIVersion(v1beta2.Group + "/" + version)
	out.SetKind(of.GetKind())
	if err := a.Get(t.Context(), client.ObjectKeyFromObject(of), out); err != nil {
		t.Fatal(err)
	}
	return out
}

func field(o *unstructured.Unstructured, path ...string) any {
	value, _, _ := unstructured.NestedFieldNoCopy(o.Object, path...)
	return value
}

func wantField(t *testing.T, o *unstructured.Unstructured, want any, path ...string) {
	t.Helper()
	have, _ := json.Marshal(field(o, path...))
	expected, _ := json.Marshal(want)
	if !bytes.Equal(have, expected) {
		t.Errorf("%s %s in %s: %s is %s, want %s", o.GetKind(), o.GetName(), o.GetAPIVersion(), strings.Join(path, "."), have, expected)
	}
}

// TestBothVersionsThroughARealAPIServer writes objects in each version and reads them in both, as users do.
func TestBothVersionsThroughARealAPIServer(t *testing.T) {
	a := live(t)
	// The API server hears of webhooks a little later than it confirms them.
	for range 100 {
		probe := object(t, "{apiVersion: appmesh.k8s.aws/v1beta2, kind: VirtualNode, metadata: {name: probe, namespace: default}}")
		if err := a.Create(t.Context(), probe, client.DryRunAll); apierrors.IsForbidden(err) {
			break
		}
		<-clock.Real{}.After(poll)
	}
	a.create(t, "{apiVersion: v1, kind: Namespace, metadata: {name: shop, labels: {mesh: m}}}")
	a.create(t, "{apiVersion: v1, kind: Namespace, metadata: {name: prod}}")
	t.Run("v1beta2", a.testV1beta2)
	t.Run("v1beta1", a.testV1beta1)
	t.Run("server-side apply", a.testApply)
	t.Run("kubectl", a.testKubectl)
}

func (a *api) testV1beta2(t *testing.T) {
	early := object(t, "{apiVersion: appmesh.k8s.aws/v1beta2, kind: VirtualNode, metadata: {name: early, namespace: shop}}")
	if err := a.Create(t.Context(), early); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "failed to find matching mesh for namespace: shop, expecting 1 but found 0") {
		t.Errorf("a node before its mesh: %v", err)
	}
	m := a.create(t, "{apiVersion: appmesh.k8s.aws/v1beta2, kind: Mesh, metadata: {name: m}, spec: {namespaceSelector: {matchLabels: {mesh: m}}}}")
	wantField(t, m, "m", "spec", "awsName")
	wantField(t, a.as(t, m, "v1beta1"), map[string]any{"matchLabels": map[string]any{"mesh": "m"}}, "spec", "namespaceSelector")

	node := a.create(t, `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: web, namespace: shop}
spec:
  podSelector: {matchLabels: {app: web}}
  listeners:
  - portMapping: {port: 8080, protocol: http}
    timeout: {http: {perRequest: {unit: s, value: 5}}}
  backends: [{virtualService: {virtualServiceRef: {name: later}}}]
`)
	ref := map[string]any{"name": "m", "uid": string(m.GetUID())}
	wantField(t, node, "web_shop", "spec", "awsName")
	wantField(t, node, ref, "spec", "meshRef")
	// A client of the old version reads it, writes a label, and loses nothing.
	before := field(node, "spec")
	old := a.as(t, node, "v1beta1")
	wantField(t, old, "v1beta2", "spec", "writtenIn")
	old.SetLabels(map[string]string{"seen": "yes"})
	if err := a.Update(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	node = a.as(t, node, "v1beta2")
	wantField(t, node, before, "spec")
	wantField(t, node, "yes", "metadata", "labels", "seen")

	renamed := node.DeepCopy()
	_ = unstructured.SetNestedField(renamed.Object, "other", "spec", "awsName")
	if err := a.Update(t.Context(), renamed); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "VirtualNode shop/web update may not change these fields: spec.awsName") {
		t.Errorf("renaming: %v", err)
	}
	a.warnings.take()
	a.create(t, "{apiVersion: appmesh.k8s.aws/v1beta2, kind: VirtualNode, metadata: {name: web2, namespace: shop}, spec: {awsName: web_shop, podSelector: {}}}")
	if got := a.warnings.take(); len(got) != 1 || !strings.Contains(got[0], "belongs to shop/web") {
		t.Errorf("warnings of a name that is taken: %q", got)
	}
	broken := object(t, "{apiVersion: appmesh.k8s.aws/v1beta2, kind: VirtualService, metadata: {name: x, namespace: shop}, spec: {provider: {virtualNode: {}}}}")
	if err := a.Create(t.Context(), broken); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "VirtualService shop/x is not valid: ") {
		t.Errorf("a fault: %v", err)
	}
}

func (a *api) testV1beta1(t *testing.T) {
	a.create(t, "{apiVersion: appmesh.k8s.aws/v1beta1, kind: Mesh, metadata: {name: dj-app}, spec: {serviceDiscoveryType: dns}}")
	node := a.create(t, `
apiVersion: appmesh.k8s.aws/v1beta1
kind: VirtualNode
metadata: {name: jazz-v1, namespace: prod}
spec:
  meshName: dj-app
  listeners:
  - portMapping: {port: 9080, protocol: http}
    healthCheck: {path: /ping}
  serviceDiscovery: {dns: {hostName: jazz-v1.prod.svc.cluster.local}}
`)
	wantField(t, node, nil, "spec", "awsName")
	wantField(t, node, nil, "spec", "meshRef")
	stored := a.as(t, node, "v1beta2")
	wantField(t, stored, "jazz-v1-prod", "spec", "awsName")
	wantField(t, stored, map[string]any{"name": "dj-app"}, "spec", "meshRef")
	wantField(t, stored, "jazz-v1.prod.svc.cluster.local", "spec", "serviceDiscovery", "dns", "hostname")
	service := a.create(t, strings.Split(oldService, "status:")[0])
	read := a.as(t, service, "v1beta1")
	wantField(t, read, field(object(t, oldService), "spec"), "spec")
	wantField(t, read, nil, "status")

	moved := read.DeepCopy()
	_ = unstructured.SetNestedField(moved.Object, "m", "spec", "meshName")
	if err := a.Update(t.Context(), moved); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.meshName") {
		t.Errorf("moving to another mesh: %v", err)
	}
	wrong := object(t, strings.ReplaceAll(strings.Split(oldService, "status:")[0], "weight: 95", "weight: 950"))
	wrong.SetName("wrong")
	if err := a.Create(t.Context(), wrong); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "spec.routes[0].http.action.weightedTargets[0].weight") {
		t.Errorf("a fault in v1beta1's names: %v", err)
	}
}

func (a *api) testApply(t *testing.T) {
	for round, weight := range []int64{95, 95, 90} {
		text := strings.Replace(strings.Split(oldService, "status:")[0], "weight: 95", "weight: "+map[int64]string{95: "95", 90: "90"}[weight], 1)
		applied := object(t, text)
		applied.SetName("applied.prod.svc.cluster.local")
		unstructured.RemoveNestedField(applied.Object, "metadata", "uid")
		unstructured.RemoveNestedField(applied.Object, "metadata", "unheardOf")
		_ = unstructured.SetNestedField(applied.Object, "applied-router", "spec", "virtualRouter", "name")
		if err := a.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(applied), client.FieldOwner("tester")); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		got := a.as(t, applied, "v1beta2")
		if want := int64(1 + round/2); got.GetGeneration() != want {
			t.Errorf("round %d: generation %d, want %d", round, got.GetGeneration(), want)
		}
	}
	// An object of the other version, applied twice, is the same object.
	for range 2 {
		node := object(t, `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualRouter
metadata: {name: applied, namespace: shop}
spec:
  listeners: [{portMapping: {port: 8080, protocol: http}}]
`)
		if err := a.Apply(t.Context(), client.ApplyConfigurationFromUnstructured(node), client.FieldOwner("tester")); err != nil {
			t.Fatal(err)
		}
		got := a.as(t, node, "v1beta2")
		wantField(t, got, "applied_shop", "spec", "awsName")
		if got.GetGeneration() != 1 {
			t.Errorf("generation %d, want 1", got.GetGeneration())
		}
	}
}

// testKubectl reads and writes as users do.
func (a *api) testKubectl(t *testing.T) {
	home, err := os.UserHomeDir()
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(home, ".cache/tulle/lab/tools/kubernetes/*/kubectl"))
	if len(found) == 0 {
		t.Fatal("kubectl is not beside the API server")
	}
	kubectl := func(stdin string, args ...string) string {
		t.Helper()
		args = append([]string{"--server=" + a.config.Host, "--token=" + a.config.BearerToken, "--certificate-authority=" + a.config.CAFile}, args...)
		cmd := exec.CommandContext(t.Context(), slices.Max(found), args...)
		cmd.Env = append(os.Environ(), "KUBECONFIG=/dev/null", "HOME="+t.TempDir())
		cmd.Stdin = strings.NewReader(stdin)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	text := kubectl("", "-n", "prod", "get", "virtualservice", "jazz.prod.svc.cluster.local", "-o", "json")
	service := object(t, text)
	wantField(t, service, field(object(t, oldService), "spec", "routes"), "spec", "routes")

	// The walkthrough's canary: the same manifest of v1beta1 with other weights, applied over and over.
	manifest := strings.Replace(strings.Split(oldService, "status:")[0], ", uid: u, unheardOf: {kept: true}", "", 1)
	manifest = strings.ReplaceAll(strings.ReplaceAll(manifest, "jazz.prod", "canary.prod"), "jazz-router", "canary-router")
	for _, step := range []struct{ weight, want string }{{"95", "created"}, {"95", "unchanged"}, {"50", "configured"}} {
		out := kubectl(strings.Replace(manifest, "weight: 95", "weight: "+step.weight, 1), "apply", "-f", "-")
		if !strings.Contains(out, "virtualservice.appmesh.k8s.aws/canary.prod.svc.cluster.local "+step.want) {
			t.Errorf("weight %s: %s", step.weight, out)
		}
	}
	// Migration: the same object in v1beta2, applied over the old one, keeps its name.
	kubectl(`
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: canary.prod.svc.cluster.local, namespace: prod}
spec:
  provider: {virtualRouter: {virtualRouterRef: {name: canary}}}
`, "apply", "-f", "-")
	moved := a.as(t, service, "v1beta2")
	moved.SetName("canary.prod.svc.cluster.local")
	moved = a.as(t, moved, "v1beta2")
	wantField(t, moved, "canary.prod.svc.cluster.local", "spec", "awsName")
	wantField(t, moved, nil, "spec", "routes")
	wantField(t, moved, nil, "spec", "meshName")
	wantField(t, moved, map[string]any{"name": "dj-app"}, "spec", "meshRef")
}
