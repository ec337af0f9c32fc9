// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package compat_test reads App Mesh's own examples as they stand, and has real Envoy take what comes of them.
package compat_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/tulle-mesh/tulle/internal/agent/envoytest"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/files"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/plane"
	"github.com/tulle-mesh/tulle/internal/store"
)

// TestEveryExampleBecomesConfigurationThatEnvoyTakes takes all of AWS's public examples the whole way: every custom resource is in the model or a finding
// says why not, the findings are those that were reviewed, and real Envoy takes the configuration of every virtual node.
func TestEveryExampleBecomesConfigurationThatEnvoyTakes(t *testing.T) {
	t.Parallel()
	seen := &bootstraps{checked: map[[sha256.Size]byte]bool{}}
	all := examples(t)
	if len(all) < 80 {
		t.Fatalf("only %d examples: the corpus is not whole", len(all))
	}
	t.Cleanup(func() { seen.report(t, all) })
	for _, e := range all {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			now, findings := load(t, e)
			compareFindings(t, e, findings)
			accountForAll(t, e, now, findings)
			seen.validateNodes(t, now)
		})
	}
}

// load reads an example as 'tulle check' does.
func load(t *testing.T, e example) (*store.Snapshot, []mesh.Finding) {
	t.Helper()
	source := files.New(files.Options{Paths: e.files, Namespace: e.namespace, Clock: clock.Real{}})
	changes, err := source.Load()
	if err != nil {
		t.Fatal(err)
	}
	s := store.New(mesh.Options{Region: "us-west-2", AccountID: "111122223333"})
	s.Apply(changes)
	return s.Snapshot(), mesh.SortFindings(append(s.Findings(), plane.Check(s.Snapshot())...))
}

// named is the identity of an object in a manifest.
type named struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string `yaml:"kind"`
	Metadata   struct {
		Name      string `yaml:"name"`
		Namespace string `yaml:"namespace"`
	} `yaml:"metadata"`
	Items []named `yaml:"items"`
}

// accountForAll fails for each custom resource that is neither in the model nor in a finding.
func accountForAll(t *testing.T, e example, now *store.Snapshot, findings []mesh.Finding) {
	t.Helper()
	known := map[string]bool{}
	for _, key := range now.Keys() {
		known[now.Get(key).From().String()] = true
	}
	for _, f := range findings {
		if f.Severity == mesh.SeverityError {
			known[f.Object.String()] = true
		}
	}
	for _, file := range e.files {
		text, err := os.ReadFile(filepath.Clean(file))
		if err != nil {
			t.Fatal(err)
		}
		documents := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var o named
			err := documents.Decode(&o)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			for _, o := range append(o.Items, o) {
				if !strings.HasPrefix(o.APIVersion, "appmesh.k8s.aws/") {
					continue
				}
				s := mesh.Source{Kind: o.Kind, Namespace: o.Metadata.Namespace, Name: o.Metadata.Name}
				switch {
				case o.Kind == "Mesh":
					s.Namespace = ""
				case s.Namespace == "":
					s.Namespace = e.namespace
				}
				if !known[s.String()] {
					t.Errorf("%s: %s is lost without a word", file, s)
				}
			}
		}
	}
}

// bootstraps are the configurations that Envoy was asked about; many examples share them.
type bootstraps struct {
	mu      sync.Mutex
	checked map[[sha256.Size]byte]bool
	nodes   int
}

// validateNodes makes a static bootstrap of every virtual node and asks the real Envoy about each that is new.
func (b *bootstraps) validateNodes(t *testing.T, now *store.Snapshot) {
	t.Helper()
	for _, key := range now.Keys() {
		if key.Kind != mesh.KindVirtualNode {
			continue
		}
		view, _, _ := mesh.ViewOf(now, key, mesh.Profile{})
		if view == nil {
			t.Errorf("%s has no View", key)
			continue
		}
		resources, _ := envoy.Build(view)
		for _, r := range append(append(resources.Clusters, resources.Listeners...), resources.Routes...) {
			if v, ok := r.Message.(interface{ ValidateAll() error }); !ok || v.ValidateAll() != nil {
				t.Errorf("%s: %s breaks the rules of its message: %v", key, r.Name, v.ValidateAll())
			}
		}
		var sets []*mesh.EndpointSet
		for _, k := range view.EndpointSets() {
			set, _, _ := mesh.EndpointSetOf(now, k)
			sets = append(sets, set)
		}
		bootstrap, _ := envoy.Static(view, sets, envoy.StaticOptions{})
		text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(bootstrap)
		if err != nil {
			t.Fatal(err)
		}
		if b.isNew(text) {
			file := filepath.Join(t.TempDir(), fmt.Sprintf("%x.json", sha256.Sum256([]byte(key.String()))))
			if err := os.WriteFile(file, text, 0o600); err != nil {
				t.Fatal(err)
			}
			t.Log(key)
			envoytest.Validate(t, file)
		}
	}
}

func (b *bootstraps) isNew(text []byte) bool {
	sum := sha256.Sum256(text)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes++
	known := b.checked[sum]
	b.checked[sum] = true
	return !known
}

// report holds the sum of all examples against what is known of them.
func (b *bootstraps) report(t *testing.T, all []example) {
	t.Helper()
	wanted := map[string]bool{}
	for _, e := range all {
		wanted[golden(e)] = true
	}
	prune(t, wanted)
	b.mu.Lock()
	defer b.mu.Unlock()
	t.Logf("%d examples, %d virtual nodes, %d different configurations", len(all), b.nodes, len(b.checked))
}
