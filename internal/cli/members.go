// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/kube/roster"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// describeMembers lists the pods that belong to a node or gateway, each with its proxy, and proxies beyond them.
func describeMembers(ctx context.Context, env Env, f *clusterFlags, cluster *asked, r *resource) error {
	pods, err := cluster.members(ctx, r)
	if err != nil {
		return err
	}
	proxies, silent := cluster.proxies(ctx, f.system)
	if silent != nil {
		env.complain("warning: %v\n", silent)
	}
	proxies = slices.DeleteFunc(proxies, func(p proxyRow) bool { return !r.is(p.Node) })
	var text strings.Builder
	fmt.Fprintf(&text, "  Pods: %d\n", len(pods))
	rows := make([][]string, 0, len(pods))
	for i := range pods {
		rows = append(rows, memberCells(&pods[i], proxies, env.Clock.Now()))
		proxies = slices.DeleteFunc(proxies, func(p proxyRow) bool { return p.Pod == pods[i].Namespace+"/"+pods[i].Name })
	}
	if len(rows) > 0 {
		err = table(&text, []string{"POD", "READY", "PROXY"}, rows)
	}
	if len(proxies) > 0 {
		fmt.Fprintf(&text, "  Other proxies: %d\n", len(proxies))
		err = errors.Join(err, table(&text, proxyHeader(), proxyCells(proxies, env.Clock.Now())))
	}
	_, printed := fmt.Fprint(env.Stdout, text.String())
	return errors.Join(err, printed)
}

// is says whether a proxy's name is the resource's.
func (r *resource) is(node string) bool {
	arn, err := mesh.ParseARN(r.ARN)
	if err != nil {
		return false // an object that is not in force has no ARN, and no proxies
	}
	key, err := mesh.ParseProxyID(node)
	return err == nil && key == arn.Key
}

// members are the pods that belong to a node or gateway, or would if it were in force, and have not ended.
func (a *asked) members(ctx context.Context, r *resource) ([]corev1.Pod, error) {
	who, err := roster.Read(ctx, a, decode.Options{}, r.Namespace)
	if err != nil {
		return nil, err
	}
	var pods corev1.PodList
	if err := a.List(ctx, &pods, client.InNamespace(r.Namespace)); err != nil {
		return nil, fmt.Errorf("listing the pods of namespace %s: %w", r.Namespace, err)
	}
	return slices.DeleteFunc(pods.Items, func(pod corev1.Pod) bool {
		belongs := who.Membership(&pod)
		ours := func(m decode.Member) bool { return m.ID.Kind == r.Kind && m.ID.Name == r.Name }
		ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
		return ended || (!slices.ContainsFunc(belongs.Members, ours) && !slices.ContainsFunc(belongs.Idle, ours))
	}), nil
}

// sidecar is the name of a pod's container with the proxy.
const sidecar = "envoy"

func memberCells(pod *corev1.Pod, proxies []proxyRow, now time.Time) []string {
	ready := "no"
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue {
			ready = "yes"
		}
	}
	name := pod.Namespace + "/" + pod.Name
	isSidecar := func(c corev1.Container) bool { return c.Name == sidecar }
	proxy := "not connected: kubectl -n " + pod.Namespace + " logs " + pod.Name + " -c " + sidecar
	if !slices.ContainsFunc(pod.Spec.Containers, isSidecar) && !slices.ContainsFunc(pod.Spec.InitContainers, isSidecar) {
		proxy = "none: it was made without one; make the pod again in a namespace with the label appmesh.k8s.aws/sidecarInjectorWebhook=enabled"
	}
	for i := range proxies {
		if p := &proxies[i]; p.Pod == name {
			proxy = fmt.Sprintf("connected for %s, has taken %d of %d", ago(now, p.Since), p.Acked, p.Resources)
			if since := ago(now, p.VersionSince); since != "" {
				proxy += fmt.Sprintf(", in version %s for %s", p.Version, since)
			}
			if refusal := p.nack(now); refusal != "" {
				proxy += "; refused " + refusal
			}
		}
	}
	return []string{pod.Name, ready, proxy}
}
