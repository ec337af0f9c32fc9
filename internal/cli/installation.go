// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"fmt"
	"net"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/installation"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// reasonNotReported is that of an object of which the control plane has not said anything yet.
const reasonNotReported mesh.Reason = "NotReported"

// checkCluster says what is wrong with an installation and with the objects in it.
func checkCluster(ctx context.Context, env Env, f *clusterFlags, out *format) error {
	cluster, err := f.open()
	if err != nil {
		return err
	}
	findings, err := installation.Check(ctx, installation.Options{
		Config: cluster.config, System: f.system, Now: env.Clock.Now(),
		Proxies: func(ctx context.Context) (map[string]bool, error) { return cluster.connected(ctx, f.system) },
	})
	if err != nil {
		return err
	}
	list, err := cluster.resources(ctx, "", "")
	if err != nil && !slices.ContainsFunc(findings, unlistable) {
		return err
	}
	running := !slices.ContainsFunc(findings, func(f mesh.Finding) bool { return f.Reason == installation.ReasonNotRunning })
	for i := range list {
		for _, f := range list[i].findings() {
			if running || f.Reason != reasonNotReported { // else all of them say the same
				findings = append(findings, f)
			}
		}
	}
	return writeCheck(env, out, plural(len(list), "object")+" in the cluster", mesh.SortFindings(findings))
}

// unlistable says why objects of some kind cannot be read.
func unlistable(f mesh.Finding) bool {
	return f.Object.Kind == "CustomResourceDefinition" && f.Severity == mesh.SeverityError
}

// connected are the addresses of the pods whose proxies some replica has.
func (a *asked) connected(ctx context.Context, system string) (map[string]bool, error) {
	list, err := a.proxies(ctx, system)
	if err != nil {
		return nil, err
	}
	connected := map[string]bool{}
	for i := range list {
		host, _, err := net.SplitHostPort(list[i].Address)
		if err != nil {
			host = list[i].Address
		}
		connected[host] = true
	}
	return connected, nil
}

func isReady(pod *corev1.Pod) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// findings are what a resource's conditions say is wrong.
func (r *resource) findings() []mesh.Finding {
	source := mesh.Source{Kind: r.Kind, Namespace: r.Namespace, Name: r.Name}
	if r.Observed != r.Generation {
		return []mesh.Finding{{
			Severity: mesh.SeverityWarning, Reason: reasonNotReported, Object: source,
			Message: fmt.Sprintf("the control plane has reported on generation %d of this object, which is at %d", r.Observed, r.Generation),
			Mend:    "wait some seconds; if it stays so, see whether a replica of the control plane is ready and leads",
		}}
	}
	var list []mesh.Finding
	for _, kind := range []v1beta2.ConditionType{v1beta2.Accepted, v1beta2.ResolvedRefs, v1beta2.Programmed} {
		if c := r.condition(kind); c != nil && c.Status != metav1.ConditionTrue && c.Reason != nil && c.Message != nil {
			list = append(list, mesh.Finding{Severity: mesh.SeverityError, Reason: mesh.Reason(*c.Reason), Object: source, Field: string(kind), Message: *c.Message})
		}
	}
	return list
}
