// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/test/simulate"
)

var update = flag.Bool("update", false, "write the golden outputs anew, and remove those without an input")

const (
	inputSuffix  = ".in.yaml"
	outputSuffix = ".out.yaml"
)

// TestGolden translates each testdata/*.in.yaml and compares with the *.out.yaml beside it.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, input := range inputs(t) {
		t.Run(strings.TrimSuffix(filepath.Base(input), inputSuffix), func(t *testing.T) {
			t.Parallel()
			output := strings.TrimSuffix(input, inputSuffix) + outputSuffix
			got := render(t, scene(t, input))
			if *update {
				if err := os.WriteFile(output, got, 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(output)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs (-want +got); if it is right, run go test ./internal/envoy -update\n%s", output, diff)
			}
		})
	}
}

// TestGoldenOutputsHaveInputs finds outputs whose input is gone; with -update it removes them.
func TestGoldenOutputsHaveInputs(t *testing.T) {
	t.Parallel()
	outputs, err := filepath.Glob("testdata/*" + outputSuffix)
	if err != nil {
		t.Fatal(err)
	}
	for _, output := range outputs {
		if _, err := os.Stat(strings.TrimSuffix(output, outputSuffix) + inputSuffix); err == nil {
			continue
		}
		if !*update {
			t.Errorf("%s has no input; run go test ./internal/envoy -update", output)
		} else if err := os.Remove(output); err != nil {
			t.Error(err)
		}
	}
}

func inputs(t *testing.T) []string {
	t.Helper()
	list, err := filepath.Glob("testdata/*" + inputSuffix)
	if err != nil || len(list) == 0 {
		t.Fatalf("no golden inputs: %v", err)
	}
	return list
}

func scene(t *testing.T, path string) *simulate.Scene {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulate.ReadScene(text)
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return s
}

// view makes a scene's View and endpoint sets.
func view(t *testing.T, s *simulate.Scene) (*mesh.View, []*mesh.EndpointSet) {
	t.Helper()
	v, sets, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	return v, sets
}

// render writes all that translation makes of a scene.
func render(t *testing.T, s *simulate.Scene) []byte {
	t.Helper()
	v, sets := view(t, s)
	made, findings := envoy.Build(v)
	out := map[string]any{}
	for kind, list := range map[string][]*envoy.Resource{"clusters": made.Clusters, "listeners": made.Listeners, "routes": made.Routes} {
		for _, r := range list {
			one := map[string]any{"message": plain(t, r.Message), "origins": texts(r.Origins)}
			if len(r.Needs) > 0 {
				one["needs"] = r.Needs
			}
			if r.Warms {
				one["warms"] = true
			}
			if r.Endpoints != "" {
				one["endpoints"] = r.Endpoints
			}
			appendTo(out, kind, one)
		}
	}
	for _, set := range sets {
		appendTo(out, "endpoints", plain(t, envoy.Endpoints(set).Message))
	}
	if len(findings) > 0 {
		out["findings"] = findings
	}
	text, err := yaml.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func appendTo(out map[string]any, kind string, one any) {
	list, _ := out[kind].([]any)
	out[kind] = append(list, one)
}

func texts(keys []mesh.Key) []string {
	out := make([]string, len(keys))
	for i, k := range keys {
		out[i] = k.String()
	}
	return out
}

// plain turns a message into what YAML can hold, with the field names of Envoy's documentation.
func plain(t *testing.T, m proto.Message) any {
	t.Helper()
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	var out any
	if err := json.Unmarshal(text, &out); err != nil {
		t.Fatal(err)
	}
	return out
}
