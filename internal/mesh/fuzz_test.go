// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

func FuzzParseARN(f *testing.F) {
	for _, seed := range []string{
		"arn:aws:appmesh:us-west-2:000000000000:mesh/m/virtualNode/n", "mesh/m@111122223333/virtualGateway/g", "arn:aws:appmesh:::mesh/m/virtualRouter/r/route/x", "mesh//", "arn:::::",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if key, err := mesh.ParseProxyID(text); err == nil && (key.Mesh == "" || key.Name == "" || key.Parent != "") {
			t.Errorf("%q names %+v", text, key)
		}
		arn, err := mesh.ParseARN(text)
		if err != nil {
			return
		}
		again, err := mesh.ParseARN(arn.String())
		// An owner behind the mesh's name is dropped once; a second one belongs to the name.
		if err != nil || again != arn && !strings.Contains(arn.Key.Mesh, "@") {
			t.Errorf("%q is %+v, and its own text %q is %+v, %v", text, arn, arn.String(), again, err)
		}
	})
}

func FuzzParseObject(f *testing.F) {
	for _, r := range requests(f) {
		f.Add(string(r.Kind), []byte(`{"meshName":"m","spec":`+string(r.Spec)+`}`))
	}
	f.Add("Mesh", []byte(`{"meshName":"m","metadata":{"createdAt":1e300,"version":-1},"status":{"status":"X"}}`))
	f.Fuzz(func(t *testing.T, kind string, text []byte) {
		o, err := mesh.ParseObject(mesh.Kind(kind), text)
		if err != nil {
			return
		}
		for _, finding := range mesh.Validate(o) {
			if finding.Message == "" || finding.Mend == "" || !utf8.ValidString(finding.Message+finding.Value) || utf8.RuneCountInString(finding.Value) > 80 {
				t.Errorf("finding %+v", finding)
			}
		}
		// Metadata has times that the API's form rounds; the rest survives.
		first, err := json.Marshal(mesh.Describe(o, mesh.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		again, err := mesh.ParseObject(mesh.Kind(kind), first)
		if err != nil {
			t.Fatalf("%s is read, and what it is described as is not: %v", text, err)
		}
		second, err := json.Marshal(mesh.Describe(again, mesh.Options{}))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(specOf(t, first), specOf(t, second)); diff != "" {
			t.Errorf("%s changes on its way (-once +twice):\n%s", text, diff)
		}
		m := newModel(aMesh(), o)
		for key := range m {
			mesh.ViewOf(m, key, mesh.Profile{})
			mesh.Check(m, key)
		}
	})
}

func specOf(t *testing.T, description []byte) string {
	t.Helper()
	var d struct {
		Spec json.RawMessage `json:"spec"`
	}
	if err := json.Unmarshal(description, &d); err != nil {
		t.Fatal(err)
	}
	return string(d.Spec)
}

// FuzzViewOf puts a spec from outside into the middle of a mesh that works.
func FuzzViewOf(f *testing.F) {
	for _, r := range requests(f) {
		f.Add(string(r.Kind), []byte(r.Spec))
	}
	f.Fuzz(func(t *testing.T, kind string, spec []byte) {
		o, err := request{Kind: mesh.Kind(kind), Spec: spec}.object()
		if err != nil {
			return
		}
		inX := func(o mesh.Object, m mesh.Meta) mesh.Object { m.MeshName = "x"; setMeta(o, m); return o }
		m := newModel(
			inX(aMesh(), mesh.Meta{Name: "x"}), inX(aClient("c", "x"), meta("VirtualNode", "c")), inX(aService("x", byRouter("x")), meta("VirtualService", "x")),
			inX(aRouter("x", "http/80"), meta("VirtualRouter", "x")), inX(httpRoute("x", "x", "/", "x=1"), meta("VirtualRouter", "x")), inX(aNode("x", "http/80"), meta("VirtualNode", "x")),
		).with(o)
		v, _, _ := mesh.ViewOf(m, mesh.NodeKey("x", "c"), mesh.Profile{})
		if v == nil {
			t.Fatal("one object takes the View away")
		}
		again, _, _ := mesh.ViewOf(m, mesh.NodeKey("x", "c"), mesh.Profile{})
		if !v.Equal(again) {
			t.Error("two Views of one model differ")
		}
		for _, key := range v.EndpointSets() {
			mesh.EndpointSetOf(m, key)
		}
	})
}
