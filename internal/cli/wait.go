// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta1"
	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/kube"
)

// waitFlags are those of wait.
type waitFlags struct {
	kubeconfig, system string
	timeout            time.Duration
}

func newWait(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "wait",
		Short: "Wait until the control plane answers for both API versions",
		Long: `Wait returns once the API server takes mesh objects of both API versions, that is, once admission and conversion answer. It asks with objects that are never stored
(dry run), several times, on connections of their own, since several API servers may serve the cluster.

The chart runs it after each installation and upgrade, so that what is applied next is not refused. When the time is up it says what stands in the way.`,
		Example: `  # After an installation by hand
  tulle wait --timeout 2m`,
	}
	f := &waitFlags{}
	flags := c.Flags()
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "file that says how to reach the cluster; empty for the cluster that the program runs in, else $KUBECONFIG")
	flags.StringVar(&f.system, "system-namespace", "", "namespace of the control plane; $POD_NAMESPACE, else appmesh-system, when empty")
	flags.DurationVar(&f.timeout, "timeout", 4*time.Minute, "how long to wait")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.timeout <= 0 {
			return usagef("--timeout %s: want more than 0", f.timeout)
		}
		f.system = cmp.Or(f.system, env.Getenv("POD_NAMESPACE"), systemNamespace)
		kube.LogTo(slog.New(slog.DiscardHandler)) // what the libraries say is in the errors, too
		config, err := clusterConfig(f.kubeconfig)
		if err != nil {
			return err
		}
		return f.wait(cmd.Context(), env, config)
	}
	return c
}

// WaitRules are all that wait does with the API: in the cluster's role, and in that of the control plane's namespace. The chart's hook has them.
func WaitRules() (cluster, own []rbacv1.PolicyRule) {
	return []rbacv1.PolicyRule{{APIGroups: []string{v1beta2.Group}, Resources: []string{"meshes"}, Verbs: []string{"create"}}},
		[]rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}}
}

const (
	// answersWanted are so many answers in a row.
	answersWanted = 3
	askedEvery    = 300 * time.Millisecond
	// answersWithin is how long one answer may take.
	answersWithin = 15 * time.Second
)

func (f *waitFlags) wait(ctx context.Context, env Env, config *rest.Config) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	up := env.Clock.After(f.timeout)
	var last error
	for good := 0; good < answersWanted; {
		last = askBoth(ctx, config)
		if last == nil {
			good++
		} else {
			good = 0
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-up:
			if last == nil {
				last = errors.New("it has only begun to answer")
			}
			return fmt.Errorf("the control plane does not answer for both API versions after %s: %w%s", f.timeout, last, f.diagnosis(ctx, config))
		case <-env.Clock.After(askedEvery):
		}
	}
	_, err := fmt.Fprintln(env.Stdout, "the control plane answers for both API versions")
	return err
}

// askBoth makes a Mesh of each version that is not stored, over a connection of its own.
func askBoth(ctx context.Context, config *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	http, err := rest.HTTPClientFor(config)
	if err != nil {
		return err
	}
	defer utilnet.CloseIdleConnectionsFor(http.Transport)
	c, err := client.New(config, client.Options{HTTPClient: http, Scheme: runtime.NewScheme()})
	if err != nil {
		return fmt.Errorf("the cluster does not answer: %w", err)
	}
	for _, version := range []string{v1beta2.Version, v1beta1.Version} {
		o := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": v1beta2.Group + "/" + version, "kind": "Mesh",
			"metadata": map[string]any{"generateName": "tulle-wait-"}, "spec": map[string]any{},
		}}
		if err := c.Create(ctx, o, client.DryRunAll); err != nil {
			return fmt.Errorf("trying a Mesh of %s: %w", version, err)
		}
		if got := o.GroupVersionKind().Version; got != version {
			return fmt.Errorf("trying a Mesh of %s: a Mesh of %s came back", version, got)
		}
	}
	return nil
}

// diagnosis says what the replicas of the control plane are at; empty where that cannot be told.
func (f *waitFlags) diagnosis(ctx context.Context, config *rest.Config) string {
	scheme := runtime.NewScheme()
	if corev1.AddToScheme(scheme) != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return ""
	}
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(f.system), client.MatchingLabels{controllerLabel: controllerName}); err != nil {
		return "; nor can its pods be listed: " + err.Error()
	}
	lines := []string{"\nreplicas in namespace " + f.system + ":"}
	for i := range pods.Items {
		lines = append(lines, "  "+pods.Items[i].Name+": "+podTrouble(&pods.Items[i]))
	}
	if len(pods.Items) == 0 {
		lines = append(lines, "  none: 'kubectl -n "+f.system+" describe replicasets' says why none was made")
	}
	return strings.Join(append(lines, "see also 'tulle check --cluster' and 'kubectl -n "+f.system+" logs deploy/appmesh-controller'"), "\n")
}

// podTrouble says in a few words why a pod is not ready.
func podTrouble(pod *corev1.Pod) string {
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		state, past := status.State, status.LastTerminationState.Terminated
		switch {
		case state.Waiting != nil && past != nil:
			return fmt.Sprintf("container %s waits (%s); it ended before with exit code %d: %s", status.Name, state.Waiting.Reason, past.ExitCode, strings.TrimSpace(past.Message))
		case state.Waiting != nil:
			return strings.TrimSuffix(fmt.Sprintf("container %s waits: %s: %s", status.Name, state.Waiting.Reason, state.Waiting.Message), ": ")
		}
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodScheduled && c.Status != corev1.ConditionTrue {
			return "no node takes it: " + c.Message
		}
	}
	if isReady(pod) {
		return "ready"
	}
	return "runs and is not ready yet"
}
