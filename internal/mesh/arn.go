// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"fmt"
	"slices"
	"strings"
)

// ARN is the name of an object in the form of the App Mesh API. It names alone: no account or region is ever asked anything.
type ARN struct {
	// Partition is "aws" for our own.
	Partition string
	Region    string
	AccountID string
	Key       Key
}

// ARN returns the ARN of an object of the App Mesh API, "" for a Service, EndpointSlice or Workload.
func (o Options) ARN(k Key) string {
	if _, ok := arnSegments(k); !ok {
		return ""
	}
	return ARN{Partition: "aws", Region: o.Region, AccountID: o.AccountID, Key: k}.String()
}

// String writes the ARN: "arn:aws:appmesh:us-west-2:000000000000:mesh/m/virtualNode/n".
func (a ARN) String() string {
	segments, _ := arnSegments(a.Key)
	return strings.Join([]string{"arn", a.Partition, "appmesh", a.Region, a.AccountID, strings.Join(segments, "/")}, ":")
}

// arnSegments is the part of an ARN that names an object within an account.
func arnSegments(k Key) ([]string, bool) {
	switch k.Kind {
	case KindMesh:
		return []string{"mesh", k.Name}, true
	case KindVirtualNode:
		return []string{"mesh", k.Mesh, "virtualNode", k.Name}, true
	case KindVirtualService:
		return []string{"mesh", k.Mesh, "virtualService", k.Name}, true
	case KindVirtualRouter:
		return []string{"mesh", k.Mesh, "virtualRouter", k.Name}, true
	case KindRoute:
		return []string{"mesh", k.Mesh, "virtualRouter", k.Parent, "route", k.Name}, true
	case KindVirtualGateway:
		return []string{"mesh", k.Mesh, "virtualGateway", k.Name}, true
	case KindGatewayRoute:
		return []string{"mesh", k.Mesh, "virtualGateway", k.Parent, "gatewayRoute", k.Name}, true
	default:
		return nil, false
	}
}

// ParseARN reads the ARN of an object of the App Mesh API. The mesh's owner may stand behind the mesh's name ("mesh/m@111122223333/..."), and is dropped.
func ParseARN(text string) (ARN, error) {
	parts := strings.SplitN(text, ":", 6)
	if len(parts) != 6 || parts[0] != "arn" || parts[2] != "appmesh" || parts[1] == "" {
		return ARN{}, fmt.Errorf("%q is not an ARN of App Mesh: want arn:aws:appmesh:REGION:ACCOUNT:mesh/MESH and what follows", shorten(text))
	}
	key, err := parseResource(parts[5])
	if err != nil {
		return ARN{}, err
	}
	return ARN{Partition: parts[1], Region: parts[3], AccountID: parts[4], Key: key}, nil
}

// ParseProxyID reads what a proxy calls itself: the ARN of a virtual node or virtual gateway, or the part of it from "mesh/" on.
func ParseProxyID(id string) (Key, error) {
	arn, err := ParseARN(id)
	key := arn.Key
	if !strings.HasPrefix(id, "arn:") {
		key, err = parseResource(id)
	}
	if err == nil && key.Kind != KindVirtualNode && key.Kind != KindVirtualGateway {
		err = fmt.Errorf("%q names a %s", shorten(id), key.Kind)
	}
	if err != nil {
		return Key{}, fmt.Errorf("proxy id: %w; want mesh/MESH/virtualNode/NODE or mesh/MESH/virtualGateway/GATEWAY, alone or at the end of an ARN", err)
	}
	return key, nil
}

// parseResource reads the part of an ARN that names an object within an account.
func parseResource(text string) (Key, error) {
	fail := func() (Key, error) {
		return Key{}, fmt.Errorf("%q does not name an object of App Mesh", shorten(text))
	}
	parts := strings.SplitN(text, "/", 8)
	if len(parts) < 2 || parts[0] != "mesh" || slices.Contains(parts, "") {
		return fail()
	}
	mesh := withoutOwner(parts[1])
	switch {
	case mesh == "":
		return fail()
	case len(parts) == 2:
		return MeshKey(mesh), nil
	case len(parts) == 4:
		if k, ok := memberKey(parts[2], mesh, parts[3]); ok {
			return k, nil
		}
	case len(parts) == 6 && parts[2] == "virtualRouter" && parts[4] == "route":
		return RouteKey(mesh, parts[3], parts[5]), nil
	case len(parts) == 6 && parts[2] == "virtualGateway" && parts[4] == "gatewayRoute":
		return GatewayRouteKey(mesh, parts[3], parts[5]), nil
	}
	return fail()
}

func memberKey(kind, mesh, name string) (Key, bool) {
	switch kind {
	case "virtualNode":
		return NodeKey(mesh, name), true
	case "virtualService":
		return VirtualServiceKey(mesh, name), true
	case "virtualRouter":
		return RouterKey(mesh, name), true
	case "virtualGateway":
		return GatewayKey(mesh, name), true
	}
	return Key{}, false
}

// withoutOwner drops the account that owns a shared mesh, which App Mesh's injector puts behind the mesh's name.
func withoutOwner(mesh string) string {
	name, owner, ok := strings.Cut(mesh, "@")
	if ok && isAccount(owner) {
		return name
	}
	return mesh
}

// isAccount says whether text is an AWS account id: 12 digits.
func isAccount(text string) bool {
	return len(text) == 12 && strings.Trim(text, "0123456789") == ""
}
