// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"strings"
	"testing"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

func TestARNs(t *testing.T) {
	t.Parallel()
	options := mesh.Options{Region: "eu-west-1", AccountID: "111122223333"}
	for want, key := range map[string]mesh.Key{
		"mesh/m":                                 mesh.MeshKey("m"),
		"mesh/m/virtualNode/n":                   mesh.NodeKey("m", "n"),
		"mesh/m/virtualService/s.ns.svc":         mesh.VirtualServiceKey("m", "s.ns.svc"),
		"mesh/m/virtualRouter/r":                 mesh.RouterKey("m", "r"),
		"mesh/m/virtualRouter/r/route/x":         mesh.RouteKey("m", "r", "x"),
		"mesh/m/virtualGateway/g":                mesh.GatewayKey("m", "g"),
		"mesh/m/virtualGateway/g/gatewayRoute/x": mesh.GatewayRouteKey("m", "g", "x"),
	} {
		want = "arn:aws:appmesh:eu-west-1:111122223333:" + want
		if got := options.ARN(key); got != want {
			t.Errorf("ARN of %v is %q, want %q", key, got, want)
		}
		arn, err := mesh.ParseARN(want)
		if err != nil || arn.Key != key || arn.Region != "eu-west-1" || arn.AccountID != "111122223333" || arn.Partition != "aws" {
			t.Errorf("ParseARN(%q) = %+v, %v", want, arn, err)
		}
	}
	if got := options.ARN(mesh.ServiceKey("ns", "s")); got != "" {
		t.Errorf("a Service has the ARN %q, want none", got)
	}
}

func TestProxyIDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]mesh.Key{
		"mesh/m/virtualNode/n":                                                  mesh.NodeKey("m", "n"),
		"mesh/m/virtualGateway/g":                                               mesh.GatewayKey("m", "g"),
		"mesh/m@111122223333/virtualNode/n_ns":                                  mesh.NodeKey("m", "n_ns"),
		"mesh/m@home/virtualNode/n":                                             mesh.NodeKey("m@home", "n"),
		"arn:aws:appmesh:us-west-2:000000000000:mesh/m/virtualNode/n":           mesh.NodeKey("m", "n"),
		"arn:aws-cn:appmesh:cn-north-1:1:mesh/m@111122223333/virtualGateway/g":  mesh.GatewayKey("m", "g"),
		"arn:aws:appmesh:us-west-2:000000000000:mesh/m/virtualNode/with:colons": mesh.NodeKey("m", "with:colons"),
	} {
		if got, err := mesh.ParseProxyID(id); err != nil || got != want {
			t.Errorf("ParseProxyID(%q) = %v, %v; want %v", id, got, err, want)
		}
	}
	for id, what := range map[string]string{
		"":                                 "nothing",
		"n":                                "a bare name",
		"mesh/m":                           "a mesh",
		"mesh/m/virtualRouter/r":           "a router",
		"mesh/m/virtualNode/":              "an empty name",
		"mesh//virtualNode/n":              "an empty mesh",
		"mesh/@111122223333/virtualNode/":  "an owner alone",
		"mesh/@111122223333/virtualNode/n": "a mesh without a name",
		"mesh/m/virtualNode/n/x":           "more than a name",
		"mesh/m/virtualRouter/r/route/x":   "a route",
		"mesh/m/virtualnode/n":             "the wrong case",
		"/mesh/m/virtualNode/n":            "a slash in front",
		"arn:aws:s3:::bucket":              "another service's ARN",
		"arn:aws:appmesh:us-west-2":        "half an ARN",
	} {
		key, err := mesh.ParseProxyID(id)
		if err == nil {
			t.Errorf("%s, %q, is taken for %v", what, id, key)
			continue
		}
		if !strings.Contains(err.Error(), "want mesh/MESH/virtualNode/NODE") {
			t.Errorf("%s: the error does not say what is wanted: %v", what, err)
		}
	}
	if _, err := mesh.ParseProxyID(strings.Repeat("x", 1<<20)); len(err.Error()) > 500 {
		t.Errorf("a long id makes an error of %d bytes", len(err.Error()))
	}
}
