// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package feature_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestABrokenFileKeepsItsLastGoodStateUntilItIsMended plants faults in the router's file while a proxy is connected.
func TestABrokenFileKeepsItsLastGoodStateUntilItIsMended(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string]string{
		"broken YAML":       "apiVersion: appmesh.k8s.aws/v1beta2\nkind: VirtualRouter\nmetadata: {name: api\n",
		"a tab":             "apiVersion: appmesh.k8s.aws/v1beta2\nkind: VirtualRouter\nmetadata:\n\tname: api\n",
		"half a file":       strings.TrimRight(split(1, 1)[:len(split(1, 1))-40], "\n"),
		"a wrong type":      strings.Replace(split(1, 1), "weight: 1", "weight: many", 1),
		"a key twice":       strings.Replace(split(1, 1), "metadata:", "kind: VirtualRouter\nmetadata:", 1),
		"binary":            "\x00\x01\x02\xff\xfe",
		"a list for a spec": "apiVersion: appmesh.k8s.aws/v1beta2\nkind: VirtualRouter\nmetadata: {name: api, namespace: shop}\nspec: [1, 2]\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, base())
			p := settled(t, w, new(delta))
			w.write("21-router.yaml", broken)
			w.eventually("an error for the file", func() bool {
				for _, f := range w.errors() {
					if filepath.Base(f.File) == "21-router.yaml" && f.Line > 0 && f.Message != "" {
						return true
					}
				}
				return false
			})
			if diff := cmp.Diff([]string(nil), beat(t, p)); diff != "" {
				t.Errorf("a broken file changed the proxy (-want +got):\n%s", diff)
			}
			w.write("21-router.yaml", split(10, 90))
			p.await("the mended file", func() bool { return len(p.log) > 0 })
			if diff := cmp.Diff([]string{"RDS ~" + apiRoutes}, beat(t, p)); diff != "" {
				t.Errorf("the proxy got (-want +got):\n%s", diff)
			}
			w.eventually("the error has gone", func() bool { return len(w.errors()) == 0 })
		})
	}
}

// TestAFaultIsAFindingThatNamesPlaceAndMendAndTheRestGoesOn starts with a faulty object beside a good mesh.
func TestAFaultIsAFindingThatNamesPlaceAndMendAndTheRestGoesOn(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text   string
		reason string
		object string
	}{
		"an unknown field": {
			text:   strings.Replace(node("odd"), "podSelector", "podSelektor", 1),
			reason: "UnknownField", object: "VirtualNode shop/odd",
		},
		"a missing backend": {
			text:   node("odd") + "  backends: [{virtualService: {virtualServiceRef: {name: nowhere}}}]\n",
			reason: "RefNotFound", object: "VirtualNode shop/odd",
		},
		"a name claimed twice": {
			text:   strings.Replace(node("zoo"), "spec:\n", "spec:\n  awsName: web_shop\n", 1),
			reason: "Conflicted", object: "VirtualNode shop/zoo",
		},
		"a value out of range": {
			text:   strings.Replace(node("odd"), "port: 8080", "port: 70000", 1),
			reason: "Invalid", object: "VirtualNode shop/odd",
		},
		"a host that is the proxy's own": {
			text:   strings.Replace(node("odd"), "odd.shop.svc.cluster.local", "127.0.0.1", 1),
			reason: "Invalid", object: "VirtualNode shop/odd",
		},
		"a namespace of no mesh": {
			text:   strings.ReplaceAll(node("odd"), "namespace: shop", "namespace: elsewhere"),
			reason: "NoMesh", object: "VirtualNode elsewhere/odd",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifests := base()
			manifests["95-odd.yaml"] = test.text
			w := newWorld(t, manifests)
			found := false
			for _, f := range w.checkAll() {
				if f.Reason != test.reason || f.Object != test.object {
					continue
				}
				found = true
				if f.File == "" || f.Line == 0 || f.Message == "" || f.Mend == "" {
					t.Errorf("the finding lacks place, message or mend: %+v", f)
				}
			}
			if !found {
				t.Errorf("no finding %s for %s in %v", test.reason, test.object, w.checkAll())
			}
			settled(t, w, new(delta))
		})
	}
}
