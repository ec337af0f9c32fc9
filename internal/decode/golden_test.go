// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/files"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/test/golden"
)

var update = flag.Bool("update", false, "write the golden outputs anew, and remove those without an input")

// TestManifestsBecomeMeshObjects reads testdata/<case>.in.yaml and compares what it means to the model with
// testdata/<case>.out.yaml.
func TestManifestsBecomeMeshObjects(t *testing.T) {
	t.Parallel()
	golden.Compare(t, *update, render)
}

// render loads a manifest and writes the model's objects and the findings as YAML.
func render(t *testing.T, input string) []byte {
	t.Helper()
	changes, err := files.New(files.Options{
		Paths:  []string{input},
		Decode: decode.Options{DefaultMesh: "injector-mesh"},
	}).Load()
	if err != nil {
		t.Fatal(err)
	}
	if len(changes.Removed) != 0 {
		t.Errorf("a first load removed %v", changes.Removed)
	}
	options := mesh.Options{Region: "us-west-2", AccountID: "111122223333"}
	type object struct {
		Key  string `json:"key"`
		From string `json:"from"`
		Is   any    `json:"is"`
		// Selects is set for nodes and gateways that name their pods.
		Selects bool `json:"selectsPods,omitempty"`
	}
	var out struct {
		Objects  []object       `json:"objects"`
		Findings []mesh.Finding `json:"findings,omitempty"`
	}
	for _, o := range changes.Set {
		shown := object{Key: o.Key().String(), From: o.From().String(), Is: mesh.Describe(o, options)}
		switch o := o.(type) {
		case *mesh.VirtualNode:
			shown.Selects = o.SelectsPods
		case *mesh.VirtualGateway:
			shown.Selects = o.SelectsPods
		}
		out.Objects = append(out.Objects, shown)
	}
	for _, list := range changes.Findings {
		out.Findings = append(out.Findings, list...)
	}
	out.Findings = mesh.SortFindings(out.Findings)
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	text, err = yaml.JSONToYAML(text)
	if err != nil {
		t.Fatal(err)
	}
	return append(bytes.TrimRight(text, "\n"), '\n')
}

// TestOutputIsTheSameForAnyOrderOfInput gives the decoder the same objects forwards and backwards.
func TestOutputIsTheSameForAnyOrderOfInput(t *testing.T) {
	t.Parallel()
	objects := universe()
	forwards, backwards := decode.New(decode.Options{}), decode.New(decode.Options{})
	for _, o := range objects {
		forwards.Set(decode.Object{Object: o})
	}
	for _, o := range slices.Backward(objects) {
		backwards.Set(decode.Object{Object: o})
	}
	if diff := cmp.Diff(forwards.Flush(), backwards.Flush(), addresses()...); diff != "" {
		t.Errorf("order matters:\n%s", diff)
	}
}
