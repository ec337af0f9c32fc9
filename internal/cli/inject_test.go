// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/cli"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/identity"
	"github.com/tulle-mesh/tulle/internal/inject"
	"github.com/tulle-mesh/tulle/internal/kube"
)

// TestInjectAnswersForPodsWithinItsRules runs the injector against a real API server, as a user who may do what its rules say, and asks it over TLS about a pod.
func TestInjectAnswersForPodsWithinItsRules(t *testing.T) {
	t.Parallel()
	const system = "inject-system"
	scheme, err := kube.Scheme()
	if err := errors.Join(err, rbacv1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Get(t).Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string]string{"appmesh.k8s.aws/sidecarInjectorWebhook": "enabled"}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: system}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "inject-apps", Labels: labels}},
		&v1beta2.VirtualNode{
			ObjectMeta: metav1.ObjectMeta{Name: "dj", Namespace: "inject-apps"},
			Spec: v1beta2.VirtualNodeSpec{
				MeshName: new(""), AWSName: new("dj-inject-apps"),
				Listeners: []v1beta2.Listener{{PortMapping: v1beta2.PortMapping{Port: 9080, Protocol: v1beta2.PortProtocolHTTP}}},
			},
		},
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	user, pages, webhook := injectorUser(t, c, system), freeAddress(t), freeAddress(t)
	_, health, _ := net.SplitHostPort(freeAddress(t))
	ctx, cancel := context.WithCancel(t.Context())
	var stderr lockedBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, cli.Env{
			Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &stderr, Getenv: func(string) string { return "" }, Clock: clock.Real{},
		}, []string{
			"inject", "--kubeconfig", user, "--namespace", system, "--mesh-name", "dj-app", "--webhook-addr", webhook, "--metrics-addr", pages,
			"--health-probe-port", health, "--sidecar-image", "own/image:v1", "--ecr-secret", "--inject-default=true", "--region", "eu-central-1", "--port=8080",
		})
	}()
	defer func() {
		cancel()
		if code := <-ended; code != 0 || t.Failed() {
			t.Errorf("exit code %d\n%s", code, stderr.String())
		}
	}()
	until(t, "readiness", func() bool { return page(t, "http://"+pages+"/readyz") == "ok\n" })
	if !strings.Contains(page(t, "http://"+pages+"/metrics"), "go_goroutines") {
		t.Error("no metrics")
	}
	ask := asker(t, c, system, webhook)
	if got := ask(); got.Allowed || !strings.Contains(got.Result.Message, "certificate authority is not known yet") {
		t.Errorf("without the controller's roots: %+v", got)
	}
	roots := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: identity.Bundle, Namespace: system}, Data: map[string]string{identity.BundleKey: "ROOTS"}}
	if err := c.Create(t.Context(), roots); err != nil {
		t.Fatal(err)
	}
	var response *admissionv1.AdmissionResponse
	until(t, "a proxy for the pod", func() bool {
		response = ask()
		return response.Allowed
	})
	for _, want := range []string{
		`"mesh/dj-app/virtualNode/dj-inject-apps"`, `"ROOTS"`, `"own/image:v1"`, `"eu-central-1"`, `"appmesh-ecr-secret"`, `"appmesh-controller-xds.` + system + `.svc:443"`, `"9080"`,
	} {
		if !strings.Contains(string(response.Patch), want) {
			t.Errorf("the patch has no %s: %s", want, response.Patch)
		}
	}
	for _, flag := range []string{"--inject-default", "--port"} {
		if n := strings.Count(stderr.String(), "flag="+flag+" "); n != 1 {
			t.Errorf("%s is logged %d times, want once", flag, n)
		}
	}
	if strings.Contains(stderr.String(), "cannot list") || strings.Contains(stderr.String(), "cannot watch") {
		t.Error("the rules are not enough")
	}
}

// injectorUser is the kubeconfig of a user who may do what the injector's rules say, and nothing else.
func injectorUser(t *testing.T, c client.Client, system string) string {
	t.Helper()
	cluster, own := identity.InjectorRules()
	const name = "pod-injector"
	user := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	inside := metav1.ObjectMeta{Name: name, Namespace: system}
	for _, o := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: slices.Concat(cluster, inject.Rules())},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: user, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}},
		&rbacv1.Role{ObjectMeta: inside, Rules: own},
		&rbacv1.RoleBinding{ObjectMeta: inside, Subjects: user, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}},
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	config := server.Get(t).Config
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: config.CAFile}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: config.BearerToken, Impersonate: name}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// asker asks the webhook about a pod of the Deployment dj, as an API server does that trusts the injector's own roots.
func asker(t *testing.T, c client.Client, system, address string) func() *admissionv1.AdmissionResponse {
	t.Helper()
	secret := &corev1.Secret{}
	if err := c.Get(t.Context(), client.ObjectKey{Namespace: system, Name: "appmesh-inject-certs"}, secret); err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(secret.Data["ca.crt"]) {
		t.Fatal("the injector's Secret has no roots")
	}
	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "appmesh-inject." + system + ".svc", MinVersion: tls.VersionTLS13}}}
	pod := []byte(`{"metadata":{"generateName":"dj-5d4f-","labels":{"pod-template-hash":"5d4f"},"ownerReferences":[{"kind":"ReplicaSet","name":"dj-5d4f","uid":"u","controller":true}]},
		"spec":{"containers":[{"name":"dj","image":"i"}]}}`)
	body, err := json.Marshal(admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: "inject-apps", Operation: admissionv1.Create,
			Object: runtime.RawExtension{Raw: pod},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() *admissionv1.AdmissionResponse {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+address+inject.Path, bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := caller.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = response.Body.Close() }()
		var review admissionv1.AdmissionReview
		if err := json.NewDecoder(response.Body).Decode(&review); err != nil || review.Response == nil {
			t.Fatalf("status %s: %v", response.Status, err)
		}
		return review.Response
	}
}

func TestInjectorFlagsAtFaultEndTheProgramAtItsStart(t *testing.T) {
	t.Parallel()
	for _, verb := range []string{"controller", "inject"} {
		for want, args := range map[string][]string{
			"Envoy has one tracer": {"--enable-xray-tracing", "--enable-jaeger-tracing"},
			"--sidecar-mode":       {"--sidecar-mode=nativ"},
			"--prestop-delay":      {"--prestop-delay=soon"},
		} {
			if got := run(t, "", append([]string{verb}, args...)...); got.code != 2 || !strings.Contains(got.stderr, want) {
				t.Errorf("%s %v: exit code %d, want 2 and %q in\n%s", verb, args, got.code, want, got.stderr)
			}
		}
	}
}
