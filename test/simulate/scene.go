// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package simulate walks a request through generated Envoy configuration and says where it lands, and reads the scenes that such tests start from. Tests alone may call it.
package simulate

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/store"
)

// Scene is a small mesh in the App Mesh API's own form, and the proxy that is looked at.
type Scene struct {
	// Proxy is the virtual node whose proxy's configuration is made.
	Proxy   string       `json:"proxy"`
	Profile mesh.Profile `json:"profile"`

	// Mesh is the mesh's specification; its name is "m".
	Mesh            mesh.MeshSpec                      `json:"mesh"`
	VirtualNodes    map[string]mesh.VirtualNodeSpec    `json:"virtualNodes"`
	VirtualServices map[string]mesh.VirtualServiceSpec `json:"virtualServices"`
	VirtualRouters  map[string]Router                  `json:"virtualRouters"`

	// Services and EndpointSlices are those of the cluster; a namespace left out is "prod".
	Services       []mesh.Service       `json:"services"`
	EndpointSlices []mesh.EndpointSlice `json:"endpointSlices"`
}

// Router is a virtual router with its routes.
type Router struct {
	mesh.VirtualRouterSpec
	Routes []Route `json:"routes"`
}

// Route is a route of a Router.
type Route struct {
	Name string `json:"name"`
	mesh.RouteSpec
}

const (
	meshName  = "m"
	namespace = "prod"
)

// ReadScene reads a scene from YAML; a field that a scene does not have is an error.
func ReadScene(text []byte) (*Scene, error) {
	s := new(Scene)
	if err := yaml.UnmarshalStrict(text, s); err != nil {
		return nil, fmt.Errorf("scene: %w", err)
	}
	return s, nil
}

// View makes the View of the scene's proxy and the endpoint sets that it names, as the control plane does.
func (s *Scene) View() (*mesh.View, []*mesh.EndpointSet, error) {
	memory := store.New(mesh.Options{})
	memory.Apply(mesh.Changes{Set: s.objects()})
	now := memory.Snapshot()
	view, _, findings := mesh.ViewOf(now, mesh.NodeKey(meshName, s.Proxy), s.Profile)
	if view == nil {
		return nil, nil, fmt.Errorf("virtual node %q has no view: %v", s.Proxy, findings)
	}
	var sets []*mesh.EndpointSet
	for _, key := range view.EndpointSets() {
		set, _, _ := mesh.EndpointSetOf(now, key)
		sets = append(sets, set)
	}
	return view, sets, nil
}

// Config translates the scene's proxy. Its findings are translation's own.
func (s *Scene) Config() (*Config, error) {
	view, _, err := s.View()
	if err != nil {
		return nil, err
	}
	made, findings := envoy.Build(view)
	if len(findings) > 0 {
		return nil, errors.New(findings[0].Message)
	}
	return NewConfig(made)
}

// objects are the scene's objects in the model, in a fixed order.
func (s *Scene) objects() []mesh.Object {
	out := []mesh.Object{&mesh.Mesh{Meta: meta("Mesh", meshName), Spec: s.Mesh}}
	for _, name := range slices.Sorted(maps.Keys(s.VirtualNodes)) {
		out = append(out, &mesh.VirtualNode{Meta: meta("VirtualNode", name), Spec: s.VirtualNodes[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(s.VirtualServices)) {
		out = append(out, &mesh.VirtualService{Meta: meta("VirtualService", name), Spec: s.VirtualServices[name]})
	}
	for _, name := range slices.Sorted(maps.Keys(s.VirtualRouters)) {
		router := s.VirtualRouters[name]
		out = append(out, &mesh.VirtualRouter{Meta: meta("VirtualRouter", name), Spec: router.VirtualRouterSpec})
		for i, r := range router.Routes {
			out = append(out, &mesh.Route{Meta: meta("VirtualRouter", r.Name), RouterName: name, Position: i, Spec: r.RouteSpec})
		}
	}
	for _, one := range s.Services {
		one.Namespace = orDefault(one.Namespace)
		out = append(out, &one)
	}
	for _, one := range s.EndpointSlices {
		one.Namespace = orDefault(one.Namespace)
		out = append(out, &one)
	}
	return out
}

func meta(kind, name string) mesh.Meta {
	return mesh.Meta{MeshName: meshName, Name: name, Source: mesh.Source{Kind: kind, Namespace: namespace, Name: name}}
}

func orDefault(ns string) string {
	if ns == "" {
		return namespace
	}
	return ns
}
