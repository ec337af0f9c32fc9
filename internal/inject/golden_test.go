// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/internal/inject"
	"github.com/tulle-mesh/tulle/internal/version"
	"github.com/tulle-mesh/tulle/test/golden"
)

var update = flag.Bool("update", false, "write the golden outputs anew, and remove those without an input")

// example is one input: what the operator set, what the cluster holds, and the pod that is created.
type example struct {
	// Settings are set over those of the tests.
	Settings      json.RawMessage   `json:"settings"`
	ServerVersion string            `json:"serverVersion"`
	Objects       []json.RawMessage `json:"objects"`
	Pod           json.RawMessage   `json:"pod"`
}

// TestPodsGetTheirProxy reads testdata/<case>.in.yaml and compares the pod that comes of it, or why it is refused, with testdata/<case>.out.yaml. A pod that was
// mutated is given to the webhook again, which must leave it alone.
func TestPodsGetTheirProxy(t *testing.T) {
	t.Parallel()
	golden.Compare(t, *update, render)
}

// load reads an input, and makes the webhook of it.
func load(t *testing.T, input string) (example, *webhook) {
	t.Helper()
	text, err := os.ReadFile(input)
	if err != nil {
		t.Fatal(err)
	}
	var in example
	if err := yaml.UnmarshalStrict(text, &in); err != nil {
		t.Fatal(err)
	}
	settings := testSettings()
	if len(in.Settings) > 0 {
		if err := yaml.UnmarshalStrict(in.Settings, &settings); err != nil {
			t.Fatal(err)
		}
	}
	w := newWebhook(t, settings, in.Objects)
	if in.ServerVersion != "" {
		w.serverVersion = in.ServerVersion
	}
	return in, w
}

func render(t *testing.T, input string) []byte {
	t.Helper()
	in, w := load(t, input)
	answer := w.create(t, in.Pod)
	var out struct {
		Refused  string          `json:"refused,omitempty"`
		Warnings []string        `json:"warnings,omitempty"`
		Pod      json.RawMessage `json:"pod,omitempty"`
	}
	out.Refused, out.Warnings = answer.refused, answer.warnings
	if answer.refused == "" {
		out.Pod = answer.pod
		if again := w.create(t, answer.pod); again.refused != "" || again.patched || len(again.warnings) > 0 && answer.patched {
			t.Errorf("a pod that has its proxy is not left alone: patched %v, refused %q, warned %q", again.patched, again.refused, again.warnings)
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	text, err = yaml.JSONToYAML(text)
	if err != nil {
		t.Fatal(err)
	}
	// The version of the build stands in the pod.
	return bytes.ReplaceAll(text, []byte(version.String()), []byte("VERSION"))
}

func testSettings() inject.Settings {
	s := inject.Defaults()
	s.Image = "ghcr.io/tulle-mesh/tulle-agent:v1.20.0"
	s.XDSEndpoint = "appmesh-controller-xds.appmesh-system.svc:443"
	s.Region, s.AccountID = "us-west-2", "111122223333"
	return s
}
