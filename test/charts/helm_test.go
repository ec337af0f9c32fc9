// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package charts_test tries the Helm charts with a real Helm, and with a real API server where there must be one. Pods do not run here: test/e2e does that.
package charts_test

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/test/apiserver"
)

var (
	update = flag.Bool("update", false, "write the charts' rules and the golden manifests anew, and remove those without an input")
	server apiserver.Shared
)

func TestMain(m *testing.M) {
	kube.LogTo(slog.New(slog.DiscardHandler))
	os.Exit(server.Main(m))
}

const (
	controllerChart = "appmesh-controller"
	injectChart     = "appmesh-inject"
	// kubeVersion is the cluster's that manifests without a cluster are made for.
	kubeVersion = "v1.37.2"
)

func chartPath(chart string, elements ...string) string {
	return apiserver.Repository(append([]string{"deploy", "charts", chart}, elements...)...)
}

// helm is a Helm with a home of its own.
type helm struct {
	t    *testing.T
	path string
	env  []string
}

// newHelm finds the lab's Helm. Where it is not built, the test is skipped, and fails in CI.
func newHelm(t *testing.T) *helm {
	t.Helper()
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	found, _ := filepath.Glob(filepath.Join(cache, "tulle", "lab", "tools", "helm", "*", "helm"))
	if len(found) == 0 {
		const reason = "helm is not built: run 'make lab' once"
		if value, _ := os.LookupEnv("CI"); value != "" {
			t.Fatal(reason)
		}
		t.Skip(reason)
	}
	home := t.TempDir()
	return &helm{t: t, path: slices.Max(found), env: []string{
		"HOME=" + home, "HELM_CACHE_HOME=" + home, "HELM_CONFIG_HOME=" + home, "HELM_DATA_HOME=" + home,
	}}
}

// try runs helm and returns what it says.
func (h *helm) try(args ...string) (string, error) {
	h.t.Helper()
	cmd := exec.CommandContext(h.t.Context(), h.path, args...)
	cmd.Env = h.env
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return out.String(), errors.New(err.Error() + ": " + complaint.String())
	}
	return out.String(), nil
}

func (h *helm) run(args ...string) string {
	h.t.Helper()
	out, err := h.try(args...)
	if err != nil {
		h.t.Fatalf("helm %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// template renders a chart as for a release of its own name.
func (h *helm) template(chart string, args ...string) []*unstructured.Unstructured {
	h.t.Helper()
	return objects(h.t, h.run(append([]string{"template", chart, chartPath(chart), "-n", "appmesh-system", "--kube-version", kubeVersion}, args...)...))
}

// objects reads a stream of YAML documents.
func objects(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	var list []*unstructured.Unstructured
	decoder := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), 4096)
	for {
		o := &unstructured.Unstructured{}
		err := decoder.Decode(&o.Object)
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		if len(o.Object) > 0 {
			list = append(list, o)
		}
	}
}

// pick returns the one object of a kind and name.
func pick(t *testing.T, list []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	i := slices.IndexFunc(list, func(o *unstructured.Unstructured) bool { return o.GetKind() == kind && o.GetName() == name })
	if i < 0 {
		t.Fatalf("no %s %s among %d objects", kind, name, len(list))
	}
	return list[i]
}

// kubeconfig writes the administrator's, as a user would have it, and returns its path.
func kubeconfig(t *testing.T, running *apiserver.Server) string {
	t.Helper()
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: running.Config.Host, CertificateAuthority: running.Config.CAFile}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: running.Config.BearerToken}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		t.Fatal(err)
	}
	return path
}

// cluster is a real API server with a namespace of the test's own. No pod ever runs, so hooks are left out of what Helm does with it.
type cluster struct {
	*helm
	client.Client

	namespace string
}

func newCluster(t *testing.T, namespace string) *cluster {
	t.Helper()
	h := newHelm(t)
	running := server.Get(t)
	h.env = append(h.env, "KUBECONFIG="+kubeconfig(t, running))
	c, err := client.New(running.Config, client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	return &cluster{helm: h, Client: c, namespace: namespace}
}

// upgrade is the walkthrough's "helm upgrade -i", without hooks.
func (c *cluster) upgrade(chart string, args ...string) string {
	c.t.Helper()
	return c.run(append([]string{"upgrade", "-i", chart, chartPath(chart), "-n", c.namespace, "--no-hooks", "--skip-crds"}, args...)...)
}

// names lists what is in a list.
func names(t *testing.T, list client.ObjectList) []string {
	t.Helper()
	items, err := meta.ExtractList(list)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for _, item := range items {
		o, err := meta.Accessor(item)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, o.GetName())
	}
	return all
}

func intoTyped(t *testing.T, object map[string]any, v any) {
	t.Helper()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object, v); err != nil {
		t.Fatal(err)
	}
}
