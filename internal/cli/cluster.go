// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/kube"
)

// clusterFlags are the flags of commands that ask a cluster.
type clusterFlags struct {
	kubeconfig, namespace, system string
}

func addCluster(c *cobra.Command) *clusterFlags {
	f := &clusterFlags{}
	flags := c.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "file that says how to reach the cluster; $KUBECONFIG, else ~/.kube/config, when empty")
	flags.StringVar(&f.system, "system-namespace", systemNamespace, "namespace of the control plane")
	return f
}

// scoped adds the flags of commands that list namespaced objects.
func (f *clusterFlags) scoped(c *cobra.Command) {
	c.Flags().StringVarP(&f.namespace, "namespace", "n", "", "one namespace; all when empty")
}

// asked is a cluster that is asked.
type asked struct {
	client.Client

	config  *rest.Config
	clients kubernetes.Interface
}

func (f *clusterFlags) open() (*asked, error) {
	config, err := clusterConfig(f.kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme, err := kube.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("the cluster does not answer: %w", err)
	}
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return &asked{Client: c, config: config, clients: clients}, nil
}

// resource is a custom resource as the commands show it.
type resource struct {
	Kind       string              `json:"kind"`
	Namespace  string              `json:"namespace,omitempty"`
	Name       string              `json:"name"`
	ARN        string              `json:"arn,omitempty"`
	Generation int64               `json:"generation"`
	Observed   int64               `json:"observedGeneration"`
	Conditions []v1beta2.Condition `json:"conditions"`
}

// kindNames are the kinds by the names that kubectl takes.
func kindNames() map[string]string {
	names := map[string]string{}
	for _, kind := range []string{"Mesh", "VirtualNode", "VirtualService", "VirtualRouter", "VirtualGateway", "GatewayRoute", "BackendGroup"} {
		lower := strings.ToLower(kind)
		names[lower] = kind
		names[lower+"s"] = kind
	}
	names["meshes"] = "Mesh"
	return names
}

// resources lists the custom resources of all kinds, or of one, in a namespace, or in all.
func (a *asked) resources(ctx context.Context, kind, namespace string) ([]resource, error) {
	var all []resource
	for _, object := range kube.CustomResources() {
		gvk, err := a.GroupVersionKindFor(object)
		if err != nil {
			return nil, err
		}
		if kind != "" && gvk.Kind != kind {
			continue
		}
		listed, err := a.Scheme().New(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
		if err != nil {
			return nil, err
		}
		list, ok := listed.(client.ObjectList)
		if !ok {
			return nil, fmt.Errorf("%s has no list", gvk.Kind)
		}
		var in []client.ListOption
		if namespace != "" && gvk.Kind != "Mesh" {
			in = append(in, client.InNamespace(namespace))
		}
		if err := a.List(ctx, list, in...); err != nil {
			return nil, listError(gvk.Kind, err)
		}
		items, err := meta.ExtractList(list)
		if err != nil {
			return nil, err
		}
		for _, item := range items {
			if o, ok := item.(client.Object); ok {
				all = append(all, newResource(gvk.Kind, o))
			}
		}
	}
	return all, nil
}

func listError(kind string, err error) error {
	if meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("the cluster does not know the kind %s: install the chart appmesh-controller with its CustomResourceDefinitions", kind)
	}
	return fmt.Errorf("listing %s: %w", kind, err)
}

func newResource(kind string, o client.Object) resource {
	r := resource{Kind: kind, Namespace: o.GetNamespace(), Name: o.GetName(), Generation: o.GetGeneration()}
	r.Conditions, r.Observed, r.ARN = kube.StatusOf(o)
	if r.Conditions == nil {
		r.Conditions = []v1beta2.Condition{}
	}
	return r
}

func (r *resource) condition(kind v1beta2.ConditionType) *v1beta2.Condition {
	i := slices.IndexFunc(r.Conditions, func(c v1beta2.Condition) bool { return c.Type == kind })
	if i < 0 {
		return nil
	}
	return &r.Conditions[i]
}

// state is a condition in a column.
func (r *resource) state(kind v1beta2.ConditionType) string {
	c := r.condition(kind)
	switch {
	case c == nil:
		return "-"
	case c.Status == metav1.ConditionTrue:
		return "yes"
	default:
		return "no"
	}
}

// trouble is the first thing that is wrong, in one line.
func (r *resource) trouble() string {
	if r.Observed != r.Generation {
		return "not seen yet by the control plane"
	}
	for _, kind := range []v1beta2.ConditionType{v1beta2.Accepted, v1beta2.ResolvedRefs, v1beta2.Programmed} {
		if c := r.condition(kind); c != nil && c.Status != metav1.ConditionTrue && c.Reason != nil && c.Message != nil {
			return *c.Reason + ": " + *c.Message
		}
	}
	return ""
}
