// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package charts_test

import (
	"bytes"
	"encoding/pem"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/deploy/crds"
	"github.com/tulle-mesh/tulle/internal/cli"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/test/apiserver"
)

// definitionsOf is an API server of the test's own, since definitions exist once in a cluster.
type definitionsOf struct {
	client.Client

	t          *testing.T
	kubeconfig string
}

func newDefinitions(t *testing.T) *definitionsOf {
	t.Helper()
	server.Get(t) // skips where there is none
	own, err := apiserver.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := own.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(own.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &definitionsOf{Client: c, t: t, kubeconfig: kubeconfig(t, own)}
}

// tulle runs the command line and returns what it says and its exit code.
func (d *definitionsOf) tulle(args ...string) (string, int) {
	d.t.Helper()
	var out bytes.Buffer
	env := cli.Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &out, Getenv: func(string) string { return "" }, Clock: clock.Real{}}
	code := cli.Run(d.t.Context(), env, append(args, "--kubeconfig", d.kubeconfig))
	return out.String(), code
}

func (d *definitionsOf) apply(args ...string) string {
	d.t.Helper()
	out, code := d.tulle(append([]string{"crds", "apply"}, args...)...)
	if code != 0 {
		d.t.Fatalf("crds apply %v: exit code %d\n%s", args, code, out)
	}
	return out
}

func (d *definitionsOf) definition(plural string) *apiextensionsv1.CustomResourceDefinition {
	d.t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := d.Get(d.t.Context(), client.ObjectKey{Name: plural + ".appmesh.k8s.aws"}, definition); err != nil {
		d.t.Fatal(err)
	}
	return definition
}

// replace makes a definition anew, as an older control plane had it.
func (d *definitionsOf) replace(plural string, change func(*apiextensionsv1.CustomResourceDefinition)) {
	d.t.Helper()
	old := d.definition(plural)
	if err := d.Delete(d.t.Context(), old); err != nil {
		d.t.Fatal(err)
	}
	fresh := &apiextensionsv1.CustomResourceDefinition{Spec: *old.Spec.DeepCopy()}
	fresh.Name = old.Name
	fresh.Spec.Conversion = nil
	change(fresh)
	d.eventually("the definition is made anew", func() bool {
		// It has no objects that would have to go before it, and the API server takes its time to see that, the longer the more often it has looked.
		leaving := &apiextensionsv1.CustomResourceDefinition{}
		err := d.Get(d.t.Context(), client.ObjectKeyFromObject(old), leaving)
		if err == nil && leaving.UID == old.UID && len(leaving.Finalizers) > 0 {
			leaving.Finalizers = nil
			err = d.Update(d.t.Context(), leaving)
		}
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
			d.t.Fatal(err)
		}
		fresh.ResourceVersion = ""
		err = d.Create(d.t.Context(), fresh.DeepCopy())
		if err != nil && !apierrors.IsAlreadyExists(err) && !apierrors.IsConflict(err) {
			d.t.Fatal(err)
		}
		return err == nil
	})
	d.eventually("the definition is served", func() bool {
		return slices.ContainsFunc(d.definition(plural).Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		})
	})
}

func (d *definitionsOf) eventually(what string, done func() bool) {
	d.t.Helper()
	late := time.After(time.Minute)
	for !done() {
		select {
		case <-late:
			d.t.Fatalf("after a minute it is not so: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// object makes one, as soon as the API server serves its version.
func (d *definitionsOf) object(kind, version, name string) {
	d.t.Helper()
	d.eventually(kind+" of "+version+" can be made", func() bool {
		o := object(kind, version)
		o.SetName(name)
		if kind != "Mesh" {
			o.SetNamespace("default")
		}
		err := d.Create(d.t.Context(), o)
		return err == nil
	})
}

func object(kind, version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "appmesh.k8s.aws", Version: version, Kind: kind})
	return o
}

// older adds a version to a definition in front of the newest, with a schema that takes all.
func older(definition *apiextensionsv1.CustomResourceDefinition, name string, stored bool) {
	last := definition.Spec.Versions[len(definition.Spec.Versions)-1]
	last.Storage = !stored
	definition.Spec.Versions = []apiextensionsv1.CustomResourceDefinitionVersion{{
		Name: name, Served: true, Storage: stored,
		Schema: &apiextensionsv1.CustomResourceValidation{
			OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)},
		},
	}, last}
}

func TestCRDsApplyUpgradesInPlace(t *testing.T) {
	t.Parallel()
	d := newDefinitions(t)
	d.replace("meshes", func(definition *apiextensionsv1.CustomResourceDefinition) {
		// As the original's: one version, and a root that keeps what it does not know.
		definition.Spec.Versions = definition.Spec.Versions[1:]
		definition.Spec.Versions[0].Schema.OpenAPIV3Schema.XPreserveUnknownFields = new(true)
	})
	d.object("Mesh", "v1beta2", "kept")

	out := d.apply("--system-namespace", "elsewhere")
	for _, name := range []string{"meshes", "virtualnodes", "virtualservices"} {
		if !strings.Contains(out, name+".appmesh.k8s.aws upgraded") {
			t.Errorf("%s was not upgraded:\n%s", name, out)
		}
	}
	mesh := d.definition("meshes")
	if len(mesh.Spec.Versions) != 2 || mesh.Spec.Versions[1].Schema.OpenAPIV3Schema.XPreserveUnknownFields != nil {
		t.Errorf("the definition is still the original's: %d versions", len(mesh.Spec.Versions))
	}
	if got := mesh.Spec.Conversion.Webhook.ClientConfig.Service.Namespace; got != "elsewhere" {
		t.Errorf("conversion is asked of namespace %q, want elsewhere", got)
	}
	kept := object("Mesh", "v1beta2")
	if err := d.Get(t.Context(), client.ObjectKey{Name: "kept"}, kept); err != nil {
		t.Errorf("the object is gone: %v", err)
	}

	// What the controller puts in stays.
	hook := httptest.NewTLSServer(nil)
	hook.Close()
	mesh.Spec.Conversion.Webhook.ClientConfig.CABundle = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw})
	if err := d.Update(t.Context(), mesh); err != nil {
		t.Fatal(err)
	}
	if out := d.apply("--system-namespace", "elsewhere"); strings.Count(out, " unchanged\n") != 7 {
		t.Errorf("want nothing changed:\n%s", out)
	}
	if len(d.definition("meshes").Spec.Conversion.Webhook.ClientConfig.CABundle) == 0 {
		t.Error("the certificate authority was taken away")
	}
}

func TestCRDsApplyInstalls(t *testing.T) {
	t.Parallel()
	d := newDefinitions(t)
	if err := d.DeleteAllOf(t.Context(), &apiextensionsv1.CustomResourceDefinition{}); err != nil {
		t.Fatal(err)
	}
	d.eventually("the definitions are gone", func() bool {
		list := &apiextensionsv1.CustomResourceDefinitionList{}
		return d.List(t.Context(), list) == nil && len(list.Items) == 0
	})
	if out := d.apply(); strings.Count(out, " created\n") != 7 {
		t.Errorf("want seven definitions made:\n%s", out)
	}
}

func TestCRDsApplyLeavesOldVersions(t *testing.T) {
	t.Parallel()
	for name, stored := range map[string]bool{"that are still stored": true, "that were stored once": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDefinitions(t)
			d.replace("gatewayroutes", func(definition *apiextensionsv1.CustomResourceDefinition) { older(definition, "v1alpha1", true) })
			d.object("GatewayRoute", "v1alpha1", "kept")
			if !stored {
				definition := d.definition("gatewayroutes")
				definition.Spec.Versions[0].Storage, definition.Spec.Versions[1].Storage = false, true
				if err := d.Update(t.Context(), definition); err != nil {
					t.Fatal(err)
				}
			}
			before := d.definition("meshes").Generation

			out, code := d.tulle("crds", "apply")
			for _, want := range []string{"gatewayroutes.appmesh.k8s.aws", "v1alpha1", "tulle crds apply --migrate", "crds.migrate=true"} {
				if code != 1 || !strings.Contains(out, want) {
					t.Errorf("want a refusal that says %q, got code %d:\n%s", want, code, out)
				}
			}
			if d.definition("meshes").Generation != before {
				t.Error("one definition cannot be upgraded, and another was touched")
			}

			if out := d.apply("--migrate"); !strings.Contains(out, "gatewayroutes.appmesh.k8s.aws left v1alpha1 behind: 1 object stored as v1beta2") {
				t.Errorf("not migrated:\n%s", out)
			}
			definition := d.definition("gatewayroutes")
			if !slices.Equal(definition.Status.StoredVersions, []string{"v1beta2"}) || len(definition.Spec.Versions) != 1 {
				t.Errorf("stored as %v, %d versions", definition.Status.StoredVersions, len(definition.Spec.Versions))
			}
			if err := d.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "kept"}, object("GatewayRoute", "v1beta2")); err != nil {
				t.Errorf("the object is gone: %v", err)
			}
		})
	}
}

func TestCRDsApplySaysHowToGoOnWithoutACommonVersion(t *testing.T) {
	t.Parallel()
	d := newDefinitions(t)
	d.replace("backendgroups", func(definition *apiextensionsv1.CustomResourceDefinition) {
		older(definition, "v1alpha1", true)
		definition.Spec.Versions = definition.Spec.Versions[:1]
	})
	out, code := d.tulle("crds", "apply", "--migrate")
	if code != 1 || !strings.Contains(out, "kubectl delete crd backendgroups.appmesh.k8s.aws") || !strings.Contains(out, "kubectl get backendgroups.appmesh.k8s.aws") {
		t.Errorf("want a way on, got code %d:\n%s", code, out)
	}
}

func TestCRDsPrintsWhatTheChartInstalls(t *testing.T) {
	t.Parallel()
	d := &definitionsOf{t: t}
	var out bytes.Buffer
	if code := cli.Run(t.Context(), cli.Env{Stdout: &out, Stderr: &out, Clock: clock.Real{}}, []string{"crds"}); code != 0 {
		d.t.Fatal(out.String())
	}
	files, err := crds.Files()
	if err != nil {
		t.Fatal(err)
	}
	if printed := objects(t, out.String()); len(printed) != len(files) || len(files) != 7 {
		t.Fatalf("%d definitions printed, %d files", len(printed), len(files))
	}
	for _, file := range files {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(file.Text, definition); err != nil {
			t.Errorf("%s: %v", file.Name, err)
		}
		converts := definition.Spec.Conversion != nil && definition.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
		if two := len(definition.Spec.Versions) == 2; two != converts {
			t.Errorf("%s: %d versions, converted by webhook: %v", file.Name, len(definition.Spec.Versions), converts)
		}
	}
}

func TestWaitSaysWhatStandsInTheWay(t *testing.T) {
	t.Parallel()
	d := newDefinitions(t)
	if out, code := d.tulle("wait", "--timeout", "30s"); code != 0 {
		t.Errorf("without webhooks both versions can be used, got code %d:\n%s", code, out)
	}
	d.apply() // whose conversion nobody answers
	out, code := d.tulle("wait", "--timeout", "2s")
	for _, want := range []string{"does not answer for both API versions after 2s", "conversion webhook", "replicas in namespace appmesh-system:", "none:", "tulle check --cluster"} {
		if code != 1 || !strings.Contains(out, want) {
			t.Errorf("want %q, got code %d:\n%s", want, code, out)
		}
	}
	if out, code := d.tulle("wait", "--timeout", "0s"); code != 2 || !strings.Contains(out, "--timeout") {
		t.Errorf("want wrong use, got code %d:\n%s", code, out)
	}
}
