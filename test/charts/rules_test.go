// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package charts_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/internal/cli"
	"github.com/tulle-mesh/tulle/internal/identity"
	"github.com/tulle-mesh/tulle/internal/inject"
	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/internal/kube/proxyauth"
)

type rules = []rbacv1.PolicyRule

// ruleFiles are the rules that the packages ask for, by chart and file.
func ruleFiles() map[string]rules {
	kubeCluster, kubeOwn := kube.Rules()
	identityCluster, identityOwn := identity.Rules()
	injectorCluster, injectorOwn := identity.InjectorRules()
	waitCluster, waitOwn := cli.WaitRules()
	return map[string]rules{
		controllerChart + "/cluster":              union(kubeCluster, identityCluster, inject.Rules(), proxyauth.Rules()),
		controllerChart + "/namespace":            union(kubeOwn, identityOwn),
		controllerChart + "/placeholder-services": kube.PlaceholderRules(),
		controllerChart + "/crds":                 cli.DefinitionRules(false),
		controllerChart + "/crds-migrate":         cli.DefinitionRules(true),
		controllerChart + "/wait":                 waitCluster,
		controllerChart + "/wait-namespace":       waitOwn,
		injectChart + "/cluster":                  union(injectorCluster, inject.Rules()),
		injectChart + "/namespace":                injectorOwn,
	}
}

// union joins lists of rules: those for the same resources become one, with all their verbs.
func union(lists ...rules) rules {
	var all rules
	for _, rule := range slices.Concat(lists...) {
		i := slices.IndexFunc(all, func(have rbacv1.PolicyRule) bool { return target(have) == target(rule) })
		if i < 0 {
			all = append(all, rule)
			continue
		}
		for _, verb := range rule.Verbs {
			if !slices.Contains(all[i].Verbs, verb) {
				all[i].Verbs = append(slices.Clone(all[i].Verbs), verb)
			}
		}
	}
	for i := range all {
		all[i].Verbs = slices.Sorted(slices.Values(all[i].Verbs))
	}
	slices.SortStableFunc(all, func(a, b rbacv1.PolicyRule) int { return strings.Compare(target(a), target(b)) })
	return all
}

func target(rule rbacv1.PolicyRule) string {
	return fmt.Sprint(rule.APIGroups, rule.Resources, rule.ResourceNames, rule.NonResourceURLs)
}

// It is not parallel: with -update it writes what the others render.
//
//nolint:paralleltest // see above
func TestTheChartsHoldTheRulesThatThePackagesAskFor(t *testing.T) {
	for name, want := range ruleFiles() {
		chart, file, _ := strings.Cut(name, "/")
		path := chartPath(chart, "rules", file+".yaml")
		text, err := yaml.Marshal(want)
		if err != nil {
			t.Fatal(err)
		}
		text = append([]byte("# Written by 'go test ./test/charts -update' from what each package says it does with the API; do not edit.\n"), text...)
		if *update {
			if err := os.WriteFile(path, text, 0o600); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(text), string(have)); diff != "" {
			t.Errorf("%s (-want +got), write it anew with -update:\n%s", path, diff)
		}
	}
}

func TestTheRolesAreTheUnionOfTheRules(t *testing.T) {
	t.Parallel()
	want := ruleFiles()
	all := func(name string, more ...string) rules {
		list := want[name]
		for _, m := range more {
			list = slices.Concat(list, want[m])
		}
		return list
	}
	for name, c := range map[string]struct {
		chart string
		args  []string
		roles map[string]rules
	}{
		"the controller": {controllerChart, nil, map[string]rules{
			"ClusterRole/appmesh-controller": all("appmesh-controller/cluster"), "Role/appmesh-controller": all("appmesh-controller/namespace"),
			"ClusterRole/appmesh-controller-crds": all("appmesh-controller/crds"),
			"ClusterRole/appmesh-controller-wait": all("appmesh-controller/wait"), "Role/appmesh-controller-wait": all("appmesh-controller/wait-namespace"),
		}},
		"the controller with placeholder Services and migration": {controllerChart, []string{"--set", "placeholderServices=true,crds.migrate=true"}, map[string]rules{
			"ClusterRole/appmesh-controller":      all("appmesh-controller/cluster", "appmesh-controller/placeholder-services"),
			"ClusterRole/appmesh-controller-crds": all("appmesh-controller/crds-migrate"),
		}},
		"placeholder Services where a Mesh asks for them": {controllerChart, []string{"--set", "placeholderServices=annotated"}, map[string]rules{
			"ClusterRole/appmesh-controller": all("appmesh-controller/cluster", "appmesh-controller/placeholder-services"),
		}},
		"a controller of another name": {controllerChart, []string{"--set", "fullnameOverride=mesh"}, map[string]rules{
			"Role/mesh": renamed(all("appmesh-controller/namespace"), "deployments", "mesh"),
		}},
		"the injector": {injectChart, nil, map[string]rules{
			"ClusterRole/appmesh-inject": all("appmesh-inject/cluster"), "Role/appmesh-inject": all("appmesh-inject/namespace"),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made := newHelm(t).template(c.chart, c.args...)
			for role, want := range c.roles {
				kind, name, _ := strings.Cut(role, "/")
				var have struct {
					Rules rules `json:"rules"`
				}
				intoTyped(t, pick(t, made, kind, name).Object, &have)
				if diff := cmp.Diff(want, have.Rules); diff != "" {
					t.Errorf("%s (-want +got):\n%s", role, diff)
				}
			}
		})
	}
}

// renamed is a copy of rules in which those for a resource name another object.
func renamed(list rules, resource, name string) rules {
	list = slices.Clone(list)
	for i := range list {
		if slices.Contains(list[i].Resources, resource) {
			list[i].ResourceNames = []string{name}
		}
	}
	return list
}
