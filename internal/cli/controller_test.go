// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/cli"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/test/apiserver"
)

var server apiserver.Shared

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

// kubeconfig writes the administrator's, as a user would have it.
func kubeconfig(t *testing.T) string {
	t.Helper()
	config := server.Get(t).Config
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: config.CAFile}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: config.BearerToken}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

func freeAddress(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	l, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}

func TestControllerServesAClusterAndReportsInIt(t *testing.T) {
	t.Parallel()
	file, pages := kubeconfig(t), freeAddress(t)
	_, health, _ := net.SplitHostPort(freeAddress(t))
	ctx, cancel := context.WithCancel(t.Context())
	var stderr lockedBuffer
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, cli.Env{
			Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: &stderr, Getenv: func(string) string { return "" }, Clock: clock.Real{},
		}, []string{
			"controller", "--kubeconfig", file, "--xds-addr", "unix://" + filepath.Join(t.TempDir(), "xds.sock"), "--metrics-addr", pages,
			"--webhook-addr", "127.0.0.1:0", "--health-probe-port", health, "--tls-min-version=VersionTLS12", "--aws-api-throttle=x", "--aws-account-id=123456789012",
		})
	}()
	defer func() {
		cancel()
		if code := <-ended; code != 0 {
			t.Errorf("exit code %d\n%s", code, stderr.String())
		}
	}()
	scheme, err := kube.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Get(t).Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	m := &v1beta2.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1beta2.MeshSpec{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: "shop"}}}}
	node := &v1beta2.VirtualNode{ObjectMeta: metav1.ObjectMeta{Name: "web", Namespace: "shop"}, Spec: v1beta2.VirtualNodeSpec{
		PodSelector: &metav1.LabelSelector{},
		Backends:    []v1beta2.Backend{{VirtualService: v1beta2.VirtualServiceBackend{VirtualServiceRef: &v1beta2.VirtualServiceReference{Name: "api"}}}},
	}}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web-1", Namespace: "shop"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
	}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "appmesh-system"}}, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, m, node, pod,
	} {
		if err := c.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	until(t, "the status of the node", func() bool {
		err := c.Get(t.Context(), client.ObjectKeyFromObject(node), node)
		return err == nil && node.Status.VirtualNodeARN != nil
	})
	until(t, "the pages", func() bool {
		return page(t, "http://"+pages+"/readyz") == "ok\n" && page(t, "http://127.0.0.1:"+health+"/healthz") == "ok\n"
	})
	wide := run(t, "", "status", "-A", "--kubeconfig", file)
	for _, want := range []string{"Mesh", "VirtualNode", "shop", "web", "RefNotFound: spec.backends[0]", " with something wrong"} {
		if wide.code != 1 || !strings.Contains(wide.stdout, want) {
			t.Errorf("status: exit code %d, want 1 and %q in\n%s%s", wide.code, want, wide.stdout, wide.stderr)
		}
	}
	one := run(t, "", "describe", "virtualnode/web", "-n", "shop", "--kubeconfig", file)
	for _, want := range []string{"VirtualNode shop/web\n", "mesh/m/virtualNode/web_shop\n", "ResolvedRefs: False (RefNotFound)", "Pods: 1", "web-1   no      none: it was made without one"} {
		if one.code != 0 || !strings.Contains(one.stdout, want) {
			t.Errorf("describe: exit code %d, want 0 and %q in\n%s%s", one.code, want, one.stdout, one.stderr)
		}
	}
	if r := run(t, "", "describe", "virtualnode/other", "-n", "shop", "--kubeconfig", file); r.code != 1 || !strings.Contains(r.stderr, "there is no VirtualNode other in namespace shop") {
		t.Errorf("describe of nothing: exit code %d\n%s", r.code, r.stderr)
	}
	if r := run(t, "", "proxies", "--kubeconfig", file); r.code != 1 || !strings.Contains(r.stderr, "no control plane runs in namespace appmesh-system") {
		t.Errorf("proxies: exit code %d\n%s", r.code, r.stderr)
	}
	installation := run(t, "", "check", "--cluster", "--kubeconfig", file)
	for _, want := range []string{
		"error: Namespace appmesh-system: no control plane is installed", "error: VirtualNode shop/web: ResolvedRefs: spec.backends[0]", " objects in the cluster; ",
	} {
		if installation.code != 1 || !strings.Contains(installation.stdout, want) {
			t.Errorf("check --cluster: exit code %d, want 1 and %q in\n%s%s", installation.code, want, installation.stdout, installation.stderr)
		}
	}
	var refusals []any
	if err := json.Unmarshal([]byte(page(t, "http://"+pages+"/debug/refusals")), &refusals); err != nil || refusals == nil || len(refusals) > 0 {
		t.Errorf("refusals %v, %v; want an empty list", refusals, err)
	}
	for _, flag := range []string{"--tls-min-version", "--aws-api-throttle"} {
		if n := strings.Count(stderr.String(), "flag="+flag+" "); n != 1 {
			t.Errorf("%s is logged %d times, want once:\n%s", flag, n, stderr.String())
		}
	}
}

func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for range 600 {
		if holds() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("%s did not come about", what)
}

func page(t *testing.T, url string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	response, err := (&http.Client{Timeout: 5 * time.Second}).Do(request)
	if err != nil {
		return err.Error()
	}
	defer func() { _ = response.Body.Close() }()
	var body bytes.Buffer
	_, _ = body.ReadFrom(response.Body)
	return body.String()
}

// lockedBuffer is a log that many goroutines write.
type lockedBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}
