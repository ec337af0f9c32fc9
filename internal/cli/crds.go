// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"cmp"
	"log/slog"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/deploy/crds"
	"github.com/tulle-mesh/tulle/internal/kube"
)

func newCRDs(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "crds",
		Short: "Print the CustomResourceDefinitions, or bring a cluster's up to date",
		Long: `Crds prints the seven CustomResourceDefinitions that belong to this version of the program.

Helm installs a chart's definitions once and never upgrades them; "tulle crds apply" does, and the chart runs it before each installation and upgrade.`,
		Example: `  # Read them
  tulle crds

  # Install them by hand
  tulle crds | kubectl apply --server-side -f -`,
	}
	c.RunE = func(*cobra.Command, []string) error {
		files, err := crds.Files()
		if err != nil {
			return err
		}
		for _, file := range files {
			if _, err := env.Stdout.Write(file.Text); err != nil {
				return err
			}
		}
		return nil
	}
	apply := newCRDsApply(env)
	wrapArgs(apply)
	c.AddCommand(apply)
	return c
}

// definitionFlags are those of crds apply.
type definitionFlags struct {
	kubeconfig, system string
	migrate            bool
}

func newCRDsApply(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "apply",
		Short: "Install or upgrade the CustomResourceDefinitions of a cluster",
		Long: `Apply brings the cluster's CustomResourceDefinitions to those of this version by server-side apply, as field manager "tulle-crds". The certificate authority that
a running controller has put into them stays. Definitions of the original App Mesh controllers are upgraded in place, and keep their objects.

A definition cannot be upgraded while it says that objects are stored in a version that is no longer served, such as v1alpha1. With --migrate those objects are
written again first, in a version that stays.`,
		Example: `  # Bring a cluster up to date
  tulle crds apply

  # And write objects of versions that are no longer served again
  tulle crds apply --migrate`,
	}
	f := &definitionFlags{}
	flags := c.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "file that says how to reach the cluster; empty for the cluster that the program runs in, else $KUBECONFIG")
	flags.StringVar(&f.system, "system-namespace", "", "namespace of the control plane, which converts between versions; $POD_NAMESPACE, else appmesh-system, when empty")
	flags.BoolVar(&f.migrate, "migrate", false, "write objects that are stored in old versions again, and take those versions off the definitions")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		kube.LogTo(slog.New(slog.DiscardHandler)) // what the libraries say is in the errors, too
		f.system = cmp.Or(f.system, env.Getenv("POD_NAMESPACE"), systemNamespace)
		d, err := openDefinitions(env, f)
		if err != nil {
			return err
		}
		return d.apply(cmd.Context())
	}
	return c
}

// DefinitionRules are all that crds apply does with the API, in the cluster's role. The chart's hook has them.
func DefinitionRules(migrate bool) []rbacv1.PolicyRule {
	kinds := kube.Plurals()
	names := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		names = append(names, kind+"."+v1beta2.Group)
	}
	const group, resource = "apiextensions.k8s.io", "customresourcedefinitions"
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{group}, Resources: []string{resource}, Verbs: []string{"create"}}, // which cannot be limited to names
		{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"get", "patch"}},
	}
	if migrate {
		rules = append(rules,
			rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource + "/status"}, ResourceNames: names, Verbs: []string{"patch"}},
			rbacv1.PolicyRule{APIGroups: []string{v1beta2.Group}, Resources: kinds, Verbs: []string{"list", "update"}},
		)
	}
	return rules
}
