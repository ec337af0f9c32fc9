// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const old = "appmesh.k8s.aws/v1beta1"

func asJSON(t *testing.T, text string) []byte {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// there converts an object of one version to another, and compares.
func there(t *testing.T, from, version, want string) []byte {
	t.Helper()
	got, err := Convert(asJSON(t, from), version)
	if err != nil {
		t.Fatal(err)
	}
	var have, expected any
	if err := json.Unmarshal(got, &have); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(asJSON(t, want), &expected); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, have); diff != "" {
		t.Errorf("%s differs (-want +got):\n%s", version, diff)
	}
	return got
}

const oldService = `
apiVersion: appmesh.k8s.aws/v1beta1
kind: VirtualService
metadata: {name: jazz.prod.svc.cluster.local, namespace: prod, uid: u, unheardOf: {kept: true}}
spec:
  meshName: dj-app
  virtualRouter: {name: jazz-router}
  routes:
  - name: jazz-route
    http:
      match: {prefix: /}
      action: {weightedTargets: [{virtualNodeName: jazz-v1, weight: 95}, {virtualNodeName: jazz-v2, weight: 5}]}
status: {virtualServiceArn: arn, virtualRouterArn: router, routeArns: [r], conditions: [{type: VirtualServiceActive, status: "True"}]}
`

const storedService = `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualService
metadata: {name: jazz.prod.svc.cluster.local, namespace: prod, uid: u, unheardOf: {kept: true}}
spec:
  awsName: jazz.prod.svc.cluster.local
  meshName: dj-app
  meshRef: {name: dj-app}
  virtualRouter: {name: jazz-router}
  routes:
  - name: jazz-route
    http:
      match: {prefix: /}
      action: {weightedTargets: [{virtualNodeName: jazz-v1, weight: 95}, {virtualNodeName: jazz-v2, weight: 5}]}
status: {virtualServiceARN: arn, virtualRouterArn: router, routeArns: [r], conditions: [{type: VirtualServiceActive, status: "True"}]}
`

func TestConversionInJSONIsLossless(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ old, stored string }{
		"a service of v1beta1 keeps its routes, and its metadata byte for byte": {oldService, storedService},
		"a node of v1beta2 is whole in v1beta1": {
			`
apiVersion: appmesh.k8s.aws/v1beta1
kind: VirtualNode
metadata: {name: a, namespace: shop}
spec:
  writtenIn: v1beta2
  awsName: a_shop
  meshName: m
  meshRef: {name: m, uid: u}
  podSelector: {}
  listeners:
  - portMapping: {port: 1, protocol: http}
    timeout: {http: {perRequest: {unit: s, value: 1}}}
  backends:
  - virtualService: {virtualServiceName: "", virtualServiceRef: {name: b}}
`, `
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: a, namespace: shop}
spec:
  awsName: a_shop
  meshRef: {name: m, uid: u}
  podSelector: {}
  listeners:
  - portMapping: {port: 1, protocol: http}
    timeout: {http: {perRequest: {unit: s, value: 1}}}
  backends:
  - virtualService: {virtualServiceRef: {name: b}}
`,
		},
		"a mesh": {
			`{apiVersion: appmesh.k8s.aws/v1beta1, kind: Mesh, metadata: {name: m}, spec: {egressFilter: {type: DROP_ALL}}, status: {meshArn: a, meshCondition: [{type: MeshActive, status: "True"}]}}`,
			`{apiVersion: appmesh.k8s.aws/v1beta2, kind: Mesh, metadata: {name: m}, spec: {awsName: m, egressFilter: {type: DROP_ALL}}, status: {meshARN: a, conditions: [{type: MeshActive, status: "True"}]}}`,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			there(t, tt.old, stored, tt.stored)
			there(t, tt.stored, old, tt.old)
		})
	}
}

func TestConversionOfOddObjects(t *testing.T) {
	t.Parallel()
	t.Run("a mesh without a spec gets its name, and no status that it did not have", func(t *testing.T) {
		t.Parallel()
		there(t, "{apiVersion: appmesh.k8s.aws/v1beta1, kind: Mesh, metadata: {name: m}}", stored,
			"{apiVersion: appmesh.k8s.aws/v1beta2, kind: Mesh, metadata: {name: m}, spec: {awsName: m}}")
	})
	t.Run("v1alpha1 is v1beta1", func(t *testing.T) {
		t.Parallel()
		there(t, strings.Replace(oldService, "v1beta1", "v1alpha1", 1), stored, storedService)
	})
	t.Run("one version to itself", func(t *testing.T) {
		t.Parallel()
		there(t, storedService, stored, storedService)
	})
	t.Run("a status that cannot be read is left out", func(t *testing.T) {
		t.Parallel()
		there(t, "{apiVersion: appmesh.k8s.aws/v1beta1, kind: Mesh, metadata: {name: m}, spec: {}, status: {meshArn: [1]}}", stored,
			"{apiVersion: appmesh.k8s.aws/v1beta2, kind: Mesh, metadata: {name: m}, spec: {awsName: m}}")
	})
}

func TestConversionThatIsImpossibleNamesTheObject(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ from, to, want string }{
		"a kind that v1beta1 does not have": {
			"{apiVersion: appmesh.k8s.aws/v1beta2, kind: VirtualRouter, metadata: {name: r, namespace: shop}}", old, `VirtualRouter shop/r of appmesh.k8s.aws/v1beta2 cannot be converted`,
		},
		"a version that does not exist": {storedService, "appmesh.k8s.aws/v1", "VirtualService prod/jazz.prod.svc.cluster.local cannot be converted from appmesh.k8s.aws/v1beta2 to appmesh.k8s.aws/v1"},
		"another group":                 {"{apiVersion: v1, kind: VirtualNode, metadata: {name: r}}", stored, "cannot be converted from v1"},
		"a spec of another shape": {
			"{apiVersion: appmesh.k8s.aws/v1beta1, kind: VirtualNode, metadata: {name: web, namespace: shop}, spec: {listeners: 5}}", stored, "VirtualNode shop/web of appmesh.k8s.aws/v1beta1 cannot be converted to appmesh.k8s.aws/v1beta2: ",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Convert(asJSON(t, tt.from), tt.to)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestConversionReviewsAnswerForEachObjectOrForNone(t *testing.T) {
	t.Parallel()
	handler := quiet(FromReader(&cluster{}))
	review := func(objects string) *apiextensionsv1.ConversionResponse {
		status, body := post(t, handler, ConvertPath, asJSON(t,
			"{kind: ConversionReview, apiVersion: apiextensions.k8s.io/v1, request: {uid: u, desiredAPIVersion: appmesh.k8s.aws/v1beta2, objects: ["+objects+"]}}"))
		out := &apiextensionsv1.ConversionReview{}
		if err := json.Unmarshal(body, out); status != http.StatusOK || err != nil || out.Response == nil || out.Response.UID != "u" || out.Request != nil {
			t.Fatalf("%d %s, %v", status, body, err)
		}
		return out.Response
	}
	const good = "{apiVersion: appmesh.k8s.aws/v1beta1, kind: Mesh, metadata: {name: m}}"
	if got := review(good + "," + good); got.Result.Status != "Success" || len(got.ConvertedObjects) != 2 {
		t.Errorf("two good objects: %+v", got)
	}
	if got := review(""); got.Result.Status != "Success" || got.ConvertedObjects == nil {
		t.Errorf("no objects: %+v", got)
	}
	if got := review(good + ", {apiVersion: appmesh.k8s.aws/v1beta1, kind: Pod}"); got.Result.Status != "Failure" || got.Result.Message == "" || len(got.ConvertedObjects) != 0 {
		t.Errorf("one bad object: %+v", got)
	}
}
