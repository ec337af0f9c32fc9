// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package bootstrap

import (
	"fmt"
	"strings"
)

// The kinds of App Mesh resource that a proxy can stand for, as they are written in a resource name.
const (
	virtualNode    = "virtualNode"
	virtualGateway = "virtualGateway"
)

// Proxy is the App Mesh resource that an Envoy stands for.
type Proxy struct {
	// ID is the name as it was given; it becomes Envoy's node id.
	ID string
	// Mesh is the mesh's name without its owner.
	Mesh string
	// Kind is virtualNode or virtualGateway.
	Kind string
	// Name is the App Mesh name of the node or gateway.
	Name string
}

// ParseProxy reads a resource name: mesh/MESH/virtualNode/NAME or mesh/MESH/virtualGateway/NAME, MESH with @OWNER behind it or not, the whole with
// arn:PARTITION:appmesh:REGION:ACCOUNT: before it or not.
func ParseProxy(id string) (Proxy, error) {
	path := id
	if strings.HasPrefix(id, "arn:") {
		parts := strings.SplitN(id, ":", 6)
		if len(parts) != 6 || parts[2] != "appmesh" {
			return Proxy{}, fmt.Errorf("%q is not the ARN of an App Mesh resource: want arn:aws:appmesh:REGION:ACCOUNT:mesh/MESH/virtualNode/NAME", id)
		}
		path = parts[5]
	}
	parts := strings.Split(path, "/")
	if len(parts) != 4 || parts[0] != "mesh" || parts[1] == "" || parts[3] == "" || (parts[2] != virtualNode && parts[2] != virtualGateway) {
		return Proxy{}, fmt.Errorf("%q does not name a virtual node or virtual gateway: want mesh/MESH/virtualNode/NAME or mesh/MESH/virtualGateway/NAME", id)
	}
	mesh, _, _ := strings.Cut(parts[1], "@")
	if mesh == "" {
		return Proxy{}, fmt.Errorf("%q has an empty mesh name", id)
	}
	return Proxy{ID: id, Mesh: mesh, Kind: parts[2], Name: parts[3]}, nil
}

// StatsTag is the tag that names the proxy in its statistics: appmesh.virtual_node or appmesh.virtual_gateway.
func (p Proxy) StatsTag() string {
	if p.Kind == virtualGateway {
		return "appmesh.virtual_gateway"
	}
	return "appmesh.virtual_node"
}

// MetricTag is the tag that names the proxy in the metrics extension: VirtualNode or VirtualGateway.
func (p Proxy) MetricTag() string {
	if p.Kind == virtualGateway {
		return "VirtualGateway"
	}
	return "VirtualNode"
}
