// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// request is a spec that a public example sends to the App Mesh API.
type request struct {
	Kind   mesh.Kind       `json:"kind"`
	Source string          `json:"source"`
	Spec   json.RawMessage `json:"spec"`
	// Refused is why the spec is none of the API as it became; Faults are the fields of a spec that breaks the API's rules.
	Refused string   `json:"refused"`
	Faults  []string `json:"faults"`
}

func requests(tb testing.TB) []request {
	tb.Helper()
	text, err := os.ReadFile("testdata/requests.jsonl")
	if err != nil {
		tb.Fatal(err)
	}
	var list []request
	lines := bufio.NewScanner(bytes.NewReader(text))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r request
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			tb.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

// object makes the request's object, all names "x".
func (r request) object() (mesh.Object, error) {
	body := map[string]any{"meshName": "x", "spec": r.Spec}
	switch r.Kind {
	case mesh.KindVirtualNode:
		body["virtualNodeName"] = "x"
	case mesh.KindVirtualService:
		body["virtualServiceName"] = "x"
	case mesh.KindVirtualRouter:
		body["virtualRouterName"] = "x"
	case mesh.KindRoute:
		body["virtualRouterName"], body["routeName"] = "x", "x"
	case mesh.KindVirtualGateway:
		body["virtualGatewayName"] = "x"
	case mesh.KindGatewayRoute:
		body["virtualGatewayName"], body["gatewayRouteName"] = "x", "x"
	default:
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return mesh.ParseObject(r.Kind, text)
}

func TestEveryPublicRequestSurvivesTheWayThroughTheModel(t *testing.T) {
	t.Parallel()
	list := requests(t)
	if len(list) < 300 {
		t.Fatalf("only %d requests", len(list))
	}
	for _, r := range list {
		o, err := r.object()
		if r.Refused != "" {
			if err == nil || !strings.Contains(err.Error(), r.Refused) {
				t.Errorf("%s: got error %v, want %s", r.Source, err, r.Refused)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", r.Source, err)
			continue
		}
		text, err := json.Marshal(mesh.Describe(o, mesh.Options{}))
		if err != nil {
			t.Errorf("%s: %v", r.Source, err)
			continue
		}
		var want, got any
		described := struct {
			Spec json.RawMessage `json:"spec"`
		}{}
		for _, step := range []error{json.Unmarshal(r.Spec, &want), json.Unmarshal(text, &described), json.Unmarshal(described.Spec, &got)} {
			if step != nil {
				t.Fatal(step)
			}
		}
		if diff := cmp.Diff(withoutDefaults(want), withoutDefaults(got)); diff != "" {
			t.Errorf("%s %s (-request +answer):\n%s", r.Kind, r.Source, diff)
		}
	}
}

// withoutDefaults drops empty objects and lists and false, which mean the same as nothing in the API.
func withoutDefaults(value any) any {
	switch v := value.(type) {
	case map[string]any:
		kept := map[string]any{}
		for name, inner := range v {
			if inner = withoutDefaults(inner); inner != nil && inner != false {
				kept[name] = inner
			}
		}
		if len(kept) == 0 {
			return nil
		}
		return kept
	case []any:
		if len(v) == 0 {
			return nil
		}
		list := make([]any, len(v))
		for i := range v {
			list[i] = withoutDefaults(v[i])
		}
		return list
	}
	return value
}

func TestPublicRequestsHaveNoFaultsButTheirOwn(t *testing.T) {
	t.Parallel()
	for _, r := range requests(t) {
		o, err := r.object()
		if err != nil {
			continue
		}
		var fields []string
		for _, f := range mesh.Validate(o) {
			fields = append(fields, f.Field)
		}
		if diff := cmp.Diff(r.Faults, fields); diff != "" {
			t.Errorf("%s %s: fields at fault (-want +got):\n%s", r.Kind, r.Source, diff)
		}
	}
}

func TestObjectsSurviveDescribeAndParse(t *testing.T) {
	t.Parallel()
	created := time.Date(2020, 3, 1, 12, 0, 0, 500_000_000, time.UTC)
	for name, o := range map[string]mesh.Object{
		"mesh":            &mesh.Mesh{Spec: mesh.MeshSpec{EgressFilter: &mesh.EgressFilter{Type: mesh.EgressAllowAll}}},
		"virtual node":    &mesh.VirtualNode{Spec: aNode("n", "http/80").Spec},
		"virtual service": &mesh.VirtualService{Spec: mesh.VirtualServiceSpec{Provider: byNode("n")}},
		"virtual router":  &mesh.VirtualRouter{Spec: aRouter("r", "http/80").Spec},
		"route":           &mesh.Route{RouterName: "r", Spec: httpRoute("r", "x", "/", "a=1").Spec},
		"virtual gateway": &mesh.VirtualGateway{Spec: mesh.VirtualGatewaySpec{Listeners: []mesh.VirtualGatewayListener{{PortMapping: mapping("http/80")}}}},
		"gateway route":   &mesh.GatewayRoute{GatewayName: "g", Spec: mesh.GatewayRouteSpec{HTTPRoute: &mesh.HTTPGatewayRoute{Match: mesh.HTTPGatewayRouteMatch{Prefix: new("/")}}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			setMeta(o, mesh.Meta{MeshName: "m", Name: "m", Owner: "111122223333", UID: "u", Version: 3, CreatedAt: created, UpdatedAt: created.Add(time.Hour)})
			text, err := json.Marshal(mesh.Describe(o, mesh.Options{Region: "us-west-2", AccountID: "000000000000"}))
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range []string{`"status":{"status":"ACTIVE"}`, `"createdAt":1583064000.5,`, `"arn":"arn:aws:appmesh:us-west-2:000000000000:mesh/m`, `"version":3`} {
				if !strings.Contains(string(text), part) {
					t.Errorf("%s is not in %s", part, text)
				}
			}
			got, err := mesh.ParseObject(o.Key().Kind, text)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(o, got); diff != "" {
				t.Errorf("(-before +after):\n%s", diff)
			}
		})
	}
}

func setMeta(o mesh.Object, m mesh.Meta) {
	reflect.ValueOf(o).Elem().FieldByName("Meta").Set(reflect.ValueOf(m))
}

func TestUnreadableObjects(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind mesh.Kind
		text string
		want []string
	}{
		"unknown fields are named with their path, all of them": {
			mesh.KindVirtualNode, `{"meshName":"m","virtualNodeName":"n","spec":{"listeners":[{},{"portMaping":{},"tls":{"mod":1}}],"backend":[]}}`,
			[]string{"unknown field spec.backend", "unknown field spec.listeners[1].portMaping", "unknown field spec.listeners[1].tls.mod"},
		},
		"a field in the wrong case is unknown": {mesh.KindMesh, `{"meshName":"m","Spec":{}}`, []string{"unknown field Spec"}},
		"another kind's name is unknown":       {mesh.KindMesh, `{"meshName":"m","routeName":"x"}`, []string{"unknown field routeName"}},
		"a wrong type is named with its path":  {mesh.KindVirtualRouter, `{"spec":{"listeners":[{"portMapping":{"port":"80"}}]}}`, []string{"spec.listeners.portMapping.port", "string", "whole number"}},
		"a number that does not fit":           {mesh.KindRoute, `{"spec":{"priority":99999999999}}`, []string{"spec.priority", "int32"}},
		"a list in place of an object":         {mesh.KindMesh, `[]`, []string{"the whole value", "array", "object"}},
		"an object in place of a list":         {mesh.KindVirtualRouter, `{"spec":{"listeners":{}}}`, []string{"spec.listeners", "object", "a list"}},
		"text that is no JSON":                 {mesh.KindMesh, `{`, []string{"not JSON"}},
		"two values":                           {mesh.KindMesh, `{"meshName":"m"} {}`, []string{"more than one"}},
		"nothing":                              {mesh.KindMesh, ``, []string{"not JSON"}},
		"a kind that is not of App Mesh's API": {mesh.KindService, `{}`, []string{`"Service" is no kind`}},
		"a kind that nobody knows":             {"Gateway", `{}`, []string{`"Gateway" is no kind`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o, err := mesh.ParseObject(c.kind, []byte(c.text))
			if err == nil {
				t.Fatalf("it was read: %+v", o)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in the error: %v", part, err)
				}
			}
		})
	}
}

func TestParseSpec(t *testing.T) {
	t.Parallel()
	spec, err := mesh.ParseSpec(mesh.KindMesh, []byte(`{"egressFilter":{"type":"ALLOW_ALL"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&mesh.MeshSpec{EgressFilter: &mesh.EgressFilter{Type: mesh.EgressAllowAll}}, spec); diff != "" {
		t.Error(diff)
	}
	if _, err := mesh.ParseSpec(mesh.KindMesh, []byte(`{"egressFilter":{"typ":"ALLOW_ALL"}}`)); err == nil || !strings.Contains(err.Error(), "unknown field egressFilter.typ") {
		t.Errorf("got %v", err)
	}
	if _, err := mesh.ParseSpec(mesh.KindWorkload, []byte(`{}`)); err == nil {
		t.Error("a workload has a spec")
	}
}

func TestKubernetesObjectsAreDescribedToo(t *testing.T) {
	t.Parallel()
	w := &mesh.Workload{MeshName: "m", NodeName: "n", Namespace: "ns", Name: "p", Addresses: []netip.Addr{netip.MustParseAddr("10.0.0.1")}, Ready: true}
	for want, o := range map[string]mesh.Object{
		`{"namespace":"prod","name":"k","clusterIPs":["10.0.0.1"],"ports":[{"port":80}]}`:                                                        aKubernetesService("k", "10.0.0.1", 80),
		`{"namespace":"prod","service":"k","name":"k-1","ports":[{"port":80}],"endpoints":[{"address":"10.1.0.1","ready":true,"serving":true}]}`: aSlice("k", "k-1", 80, "10.1.0.1"),
		`{"meshName":"m","virtualNodeName":"n","namespace":"ns","name":"p","addresses":["10.0.0.1"],"ready":true}`:                               w,
	} {
		text, err := json.Marshal(mesh.Describe(o, mesh.Options{}))
		if err != nil || string(text) != want {
			t.Errorf("got %s, %v; want %s", text, err, want)
		}
	}
	if got := mesh.Describe(nil, mesh.Options{}); got != nil {
		t.Errorf("nothing is described as %v", got)
	}
}
