// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package installation

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// injection is the label of a namespace, and the annotation of a pod, that asks for proxies or refuses them.
const injection = v1beta2.Group + "/sidecarInjectorWebhook"

// checkNamespaces says whether anybody hears what a namespace's label asks for.
func (k *checkup) checkNamespaces(context.Context) error {
	if k.unread["mutatingwebhookconfigurations"] {
		return nil
	}
	heard := slices.ContainsFunc(k.webhooks(), func(w webhook) bool { return w.injects() })
	for i := range k.namespaces {
		n := &k.namespaces[i]
		value, labelled := n.Labels[injection]
		at := mesh.Source{Kind: "Namespace", Name: n.Name}
		switch {
		case !labelled || n.DeletionTimestamp != nil:
		case value != "enabled" && value != "disabled":
			k.odd(mesh.ReasonInvalid, at, fmt.Sprintf("the label %s is %q, which means nothing: pods start without a proxy", injection, value),
				fmt.Sprintf("kubectl label namespace %s --overwrite %s=enabled", n.Name, injection))
		case value == "enabled" && !heard:
			k.wrong(ReasonNoSidecar, at, "this namespace asks for proxies, and there is no webhook that puts them into pods: pods start without one, and pass the mesh by",
				k.installChart()+"; then restart what runs here: kubectl -n "+n.Name+" rollout restart deployment")
		}
	}
	return nil
}

// meshed says whether a pod should have a proxy: its namespace or the pod itself asks for one, and the pod does not refuse it. What nothing is put into is left
// out: pods of the node's network, of the kubelet, and those of the charts themselves.
func (k *checkup) meshed(p *corev1.Pod, labels map[string]string) bool {
	label := labels[p.Namespace]
	asked := p.Annotations[injection]
	if p.Spec.HostNetwork || p.Annotations[corev1.MirrorPodAnnotationKey] != "" || p.Labels[nameLabel] == controllerName || p.Labels[nameLabel] == injectorName {
		return false
	}
	return label == "enabled" && asked != "disabled" || label == "disabled" && asked == "enabled"
}
