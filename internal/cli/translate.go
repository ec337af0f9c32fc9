// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/store"
)

// translateOptions are the flags of translate.
type translateOptions struct {
	in     *input
	out    *format
	to     string
	node   string
	static bool
}

func newTranslate(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "translate -f PATH --to mesh|view|envoy [--node MESH/NODE]",
		Short: "Print what manifests become, at any stage",
		Long: `Translate prints a stage of the way from manifests to Envoy: the mesh (in the App Mesh API's own shapes), the View that
one proxy may know of it, or that proxy's Envoy resources. With --static it prints one whole Envoy bootstrap with
everything inline, which 'envoy -c' runs as it is, with no control plane.`,
		Example: `  # The model
  tulle translate -f manifests/ --to mesh

  # What the proxies of one virtual node get
  tulle translate -f manifests/ --to envoy --node dj-app/dj-prod

  # A bootstrap that runs on its own
  tulle translate -f manifests/ --to envoy --node dj-app/dj-prod --static > envoy.yaml
  envoy --mode validate -c envoy.yaml`,
	}
	o := &translateOptions{in: addInput(c), out: addFormat(c, "yaml", "json")}
	c.Flags().StringVar(&o.to, "to", "mesh", "the stage: mesh, view or envoy")
	c.Flags().StringVar(&o.node, "node", "", "the virtual node or gateway, as MESH/NAME with App Mesh names; without it, all of them")
	c.Flags().BoolVar(&o.static, "static", false, "with --to envoy and --node: one whole bootstrap, everything inline")
	mustComplete(c, "to", []string{"mesh", "view", "envoy"})
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		return translate(cmd.Context(), env, o)
	}
	return c
}

func (o *translateOptions) check() error {
	switch {
	case o.to != "mesh" && o.to != "view" && o.to != "envoy":
		return usagef("--to %s: want mesh, view or envoy", o.to)
	case o.static && (o.to != "envoy" || o.node == ""):
		return usagef("--static needs --to envoy and --node MESH/NAME")
	case o.node != "" && o.to == "mesh":
		return usagef("--node goes with --to view or --to envoy")
	case o.node != "" && strings.Count(o.node, "/") != 1:
		return usagef("--node %s: want MESH/NAME with App Mesh names, as in dj-app/dj-prod", o.node)
	}
	return o.out.check()
}

func translate(ctx context.Context, env Env, o *translateOptions) error {
	loaded, err := o.in.load(ctx, env)
	if err != nil {
		return err
	}
	now := loaded.store.Snapshot()
	findings := loaded.store.Findings()
	var result any
	if o.to == "mesh" {
		result = describeAll(now)
	} else {
		var found []mesh.Finding
		result, found, err = o.proxies(now)
		findings = append(findings, found...)
	}
	if err != nil {
		return err
	}
	// The result alone goes to stdout, so that it can be piped; what was found on the way goes beside it.
	if err := printFindings(env.Stderr, false, locate(findings)); err != nil {
		return err
	}
	return o.out.write(env.Stdout, result)
}

func describeAll(now *store.Snapshot) any {
	byKind := map[mesh.Kind][]any{}
	for _, key := range now.Keys() {
		byKind[key.Kind] = append(byKind[key.Kind], mesh.Describe(now.Get(key), now.Options()))
	}
	return byKind
}

// proxies prints the View or the resources of the proxies that were asked for, by name.
func (o *translateOptions) proxies(now *store.Snapshot) (any, []mesh.Finding, error) {
	keys, err := o.keys(now)
	if err != nil {
		return nil, nil, err
	}
	all := map[string]any{}
	var findings []mesh.Finding
	for _, key := range keys {
		view, _, found := mesh.ViewOf(now, key, mesh.Profile{})
		findings = append(findings, found...)
		if view == nil {
			continue
		}
		result, found, err := o.proxy(now, view)
		if err != nil {
			return nil, nil, err
		}
		findings = append(findings, found...)
		if o.node != "" {
			return result, findings, nil
		}
		all[key.Mesh+"/"+key.Name] = result
	}
	if o.node != "" {
		return nil, nil, usagef("--node %s: it has no configuration; 'tulle check' says why", o.node)
	}
	return all, findings, nil
}

// keys are the virtual nodes and gateways that were asked for.
func (o *translateOptions) keys(now *store.Snapshot) ([]mesh.Key, error) {
	var keys []mesh.Key
	var known []string
	for _, key := range now.Keys() {
		if key.Kind != mesh.KindVirtualNode && key.Kind != mesh.KindVirtualGateway {
			continue
		}
		known = append(known, key.Mesh+"/"+key.Name)
		if o.node == "" || o.node == key.Mesh+"/"+key.Name {
			keys = append(keys, key)
		}
	}
	if o.node != "" && len(keys) == 0 {
		return nil, usagef("--node %s: there is no such virtual node or gateway; there are: %s", o.node, strings.Join(known, ", "))
	}
	return keys, nil
}

func (o *translateOptions) proxy(now *store.Snapshot, view *mesh.View) (any, []mesh.Finding, error) {
	if o.to == "view" {
		return view, nil, nil
	}
	var findings []mesh.Finding
	sets := make([]*mesh.EndpointSet, 0, len(view.EndpointSets()))
	for _, key := range view.EndpointSets() {
		set, _, found := mesh.EndpointSetOf(now, key)
		findings = append(findings, found...)
		sets = append(sets, set)
	}
	if o.static {
		bootstrap, found := envoy.Static(view, sets, envoy.StaticOptions{})
		value, err := protoJSON(bootstrap)
		return value, append(findings, found...), err
	}
	resources, found := envoy.Build(view)
	findings = append(findings, found...)
	endpoints := make([]*envoy.Resource, 0, len(sets))
	for _, set := range sets {
		endpoints = append(endpoints, envoy.Endpoints(set))
	}
	result := map[string][]json.RawMessage{}
	for kind, list := range map[string][]*envoy.Resource{
		"clusters": resources.Clusters, "endpoints": endpoints, "listeners": resources.Listeners, "routes": resources.Routes,
	} {
		for _, r := range list {
			value, err := protoJSON(r.Message)
			if err != nil {
				return nil, nil, err
			}
			result[kind] = append(result[kind], value)
		}
	}
	return result, findings, nil
}

// protoJSON writes m with the field names of Envoy's documentation.
func protoJSON(m proto.Message) (json.RawMessage, error) {
	return protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
}
