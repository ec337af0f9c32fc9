// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

func newStatus(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "status",
		Short: "Say what a cluster's mesh objects are: accepted, missing something, in force",
		Long: `Status lists the mesh's custom resources in a cluster with what the control plane says of each.

The exit code is 1 where something is wrong, else 0.`,
		Example: `  # All namespaces
  tulle status

  # One namespace, for a program
  tulle status -n prod -o json`,
	}
	f := addCluster(c)
	f.scoped(c)
	c.Flags().BoolP("all-namespaces", "A", true, "all namespaces, which is the default without -n")
	c.MarkFlagsMutuallyExclusive("namespace", "all-namespaces")
	out := addFormat(c, "text", "json", "yaml")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		return showStatus(cmd.Context(), env, f, out)
	}
	return c
}

func showStatus(ctx context.Context, env Env, f *clusterFlags, out *format) error {
	cluster, err := f.open()
	if err != nil {
		return err
	}
	list, err := cluster.resources(ctx, "", f.namespace)
	if err != nil {
		return err
	}
	wrong := 0
	rows := make([][]string, 0, len(list))
	for i := range list {
		r := &list[i]
		trouble := r.trouble()
		if trouble != "" {
			wrong++
		}
		rows = append(rows, []string{
			r.Kind, r.Namespace, r.Name, r.state(v1beta2.Accepted), r.state(v1beta2.ResolvedRefs), r.state(v1beta2.Programmed), shortened(trouble),
		})
	}
	if out.value == "text" {
		err = table(env.Stdout, []string{"KIND", "NAMESPACE", "NAME", "ACCEPTED", "REFS", "PROGRAMMED", "WHAT IS WRONG"}, rows)
		if err == nil {
			_, err = fmt.Fprintf(env.Stdout, "%s, %d with something wrong\n", plural(len(list), "object"), wrong)
		}
	} else {
		if list == nil {
			list = []resource{}
		}
		err = out.write(env.Stdout, list)
	}
	if err == nil && wrong > 0 {
		return exitError(codeError)
	}
	return err
}

// mostShown is the most of a message that fits in a row.
const mostShown = 100

func shortened(text string) string {
	if runes := []rune(text); len(runes) > mostShown {
		return string(runes[:mostShown]) + "... (tulle describe)"
	}
	return text
}

func newDescribe(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "describe KIND/NAME",
		Short: "Say all that is known of one mesh object in a cluster",
		Long: `Describe prints the conditions of a custom resource in words, and for a virtual node or gateway its pods, each with its proxy.

KIND is mesh, virtualnode, virtualservice, virtualrouter, virtualgateway, gatewayroute or backendgroup.`,
		Example: `  tulle describe virtualnode/dj -n prod`,
		Args:    cobra.ExactArgs(1),
	}
	f := addCluster(c)
	c.Flags().StringVarP(&f.namespace, "namespace", "n", "default", "namespace of the object")
	c.RunE = func(cmd *cobra.Command, args []string) error { return describe(cmd.Context(), env, f, args[0]) }
	return c
}

func describe(ctx context.Context, env Env, f *clusterFlags, arg string) error {
	word, name, ok := strings.Cut(arg, "/")
	kind := kindNames()[strings.ToLower(word)]
	if !ok || name == "" || kind == "" {
		return usagef("%s: want KIND/NAME, with KIND one of %s", arg, strings.Join(slices.Sorted(maps.Keys(kindNames())), ", "))
	}
	cluster, err := f.open()
	if err != nil {
		return err
	}
	list, err := cluster.resources(ctx, kind, f.namespace)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(list, func(r resource) bool { return r.Name == name })
	if i < 0 {
		return fmt.Errorf("there is no %s %s in namespace %s", kind, name, f.namespace)
	}
	r := &list[i]
	if _, err := fmt.Fprint(env.Stdout, r.words()); err != nil {
		return err
	}
	if kind != "VirtualNode" && kind != "VirtualGateway" {
		return nil
	}
	return describeMembers(ctx, env, f, cluster, r)
}

// words says all that a resource says of itself.
func (r *resource) words() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", r.Kind, strings.TrimPrefix(r.Namespace+"/"+r.Name, "/"))
	if r.ARN != "" {
		b.WriteString("  " + r.ARN + "\n")
	}
	if r.Observed != r.Generation {
		fmt.Fprintf(&b, "  The control plane has seen generation %d, and the object is at %d.\n", r.Observed, r.Generation)
	}
	for _, c := range r.Conditions {
		fmt.Fprintf(&b, "  %s: %s", c.Type, c.Status)
		if c.Reason != nil {
			b.WriteString(" (" + *c.Reason + ")")
		}
		if c.Message != nil {
			b.WriteString("\n      " + *c.Message)
		}
		b.WriteString("\n")
	}
	if len(r.Conditions) == 0 {
		b.WriteString("  The control plane has not said anything of it: is it running?\n")
	}
	return b.String()
}
