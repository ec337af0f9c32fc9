// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package installation

import (
	"context"
	"fmt"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// podWebhook is what the names of the webhooks that put proxies into pods begin with, as messages of the API server name them.
const podWebhook = `admission webhook "mpod`

// checkRefused finds Deployments whose pods are not made since a pod webhook refuses them. Their ReplicaSets try again, ever more rarely, and nothing else tells.
func (k *checkup) checkRefused(context.Context) error {
	for i := range k.deployments {
		d := &k.deployments[i]
		for _, c := range d.Status.Conditions {
			if c.Type != appsv1.DeploymentReplicaFailure || c.Status != corev1.ConditionTrue {
				continue
			}
			if _, refusal, ours := strings.Cut(c.Message, podWebhook); ours {
				_, why, _ := strings.Cut(refusal, "denied the request: ")
				k.wrong(ReasonRefused, mesh.Source{Kind: "Deployment", Namespace: d.Namespace, Name: d.Name}, "its pods are not made: "+why,
					fmt.Sprintf("once that is mended they are made by themselves, after a while; at once: kubectl -n %s rollout restart deployment/%s", d.Namespace, d.Name))
			}
		}
	}
	return nil
}
