// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/files"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/store"
)

// input is the flags of commands that read manifests.
type input struct {
	paths       []string
	recursive   bool
	namespace   string
	defaultMesh string
	mesh        mesh.Options
}

func addInput(c *cobra.Command) *input {
	in := &input{}
	flags := c.Flags()
	flags.StringArrayVarP(&in.paths, "filename", "f", nil, "file or directory of manifests, or - for standard input; may be repeated")
	flags.BoolVarP(&in.recursive, "recursive", "R", false, "read the directories inside directories too")
	flags.StringVarP(&in.namespace, "namespace", "n", "default", "namespace of objects that name none")
	flags.StringVar(&in.defaultMesh, "default-mesh", "", "mesh of v1beta1 objects that name none, as the old injector's mesh.name")
	flags.StringVar(&in.mesh.ClusterDomain, "cluster-domain", "cluster.local", "DNS domain of the cluster's Services")
	flags.StringVar(&in.mesh.Region, "region", "us-west-2", "region in ARNs, which are names alone")
	flags.StringVar(&in.mesh.AccountID, "account-id", "000000000000", "account in ARNs, 12 digits")
	return in
}

func (in *input) options() mesh.Options { return in.mesh }

// source is the manifests that the flags name.
func (in *input) source(env Env, logger *slog.Logger) (*files.Source, error) {
	if len(in.paths) == 0 {
		return nil, usagef("-f is required: a file or directory of manifests, or - for standard input")
	}
	if err := in.checkNames(); err != nil {
		return nil, err
	}
	return files.New(files.Options{
		Paths: in.paths, Recursive: in.recursive, Namespace: in.namespace, Stdin: env.Stdin, Clock: env.Clock, Logger: logger,
		Decode: decode.Options{DefaultMesh: in.defaultMesh},
	}), nil
}

// checkNames refuses what would make names that nobody can write down again.
func (in *input) checkNames() error {
	switch id := in.mesh.AccountID; {
	case len(validation.IsDNS1123Label(in.namespace)) > 0:
		return usagef("-n %s: want the name of a namespace: lower case letters, digits and dashes, 63 at most", in.namespace)
	case len(id) != 12 || strings.Trim(id, "0123456789") != "":
		return usagef("--account-id %s: want 12 digits", id)
	case len(validation.IsDNS1123Label(in.mesh.Region)) > 0:
		return usagef("--region %s: want lower case letters, digits and dashes, as in us-west-2", in.mesh.Region)
	case len(validation.IsDNS1123Subdomain(in.mesh.ClusterDomain)) > 0:
		return usagef("--cluster-domain %s: want a DNS domain, as in cluster.local", in.mesh.ClusterDomain)
	}
	return nil
}

// loaded is what manifests say, read once.
type loaded struct {
	store   *store.Memory
	summary string
}

func (in *input) load(_ context.Context, env Env) (loaded, error) {
	source, err := in.source(env, slog.New(slog.DiscardHandler))
	if err != nil {
		return loaded{}, err
	}
	changes, err := source.Load()
	if err != nil {
		return loaded{}, err
	}
	s := store.New(in.mesh)
	s.Apply(changes)
	return loaded{store: s, summary: summary(source.Summary())}, nil
}

// summary says what was read: "12 objects in 3 files; skipped 2 ClusterRole, 1 ConfigMap".
func summary(s files.Summary) string {
	text := plural(s.Objects, "object") + " in " + plural(s.Files, "file")
	if len(s.Skipped) == 0 {
		return text
	}
	var skipped []string
	for _, kind := range slices.Sorted(maps.Keys(s.Skipped)) {
		skipped = append(skipped, fmt.Sprintf("%d %s", s.Skipped[kind], kind))
	}
	return text + "; skipped " + strings.Join(skipped, ", ")
}
