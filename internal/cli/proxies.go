// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// proxyRow is a connected proxy as the commands show it.
type proxyRow struct {
	Node    string    `json:"node"`
	Address string    `json:"address"`
	Replica string    `json:"replica"`
	Since   time.Time `json:"since"`
	// Resources and Acked count what the proxy was sent, and took.
	Resources int `json:"resources"`
	Acked     int `json:"acked"`
	Pending   int `json:"pending"`
	// LastNack is the last refusal on the stream, and NackedAt its time.
	LastNack string    `json:"lastNack,omitempty"`
	NackedAt time.Time `json:"nackedAt,omitzero"`
}

func newProxies(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "proxies",
		Short: "List the proxies that are connected to a cluster's control plane",
		Long: `Proxies asks every replica of the control plane for its proxies: which virtual node each stands for, since when, how much of its
configuration it has taken, and its last refusal. It reads through the API server, and needs the right to do so (pods/proxy).`,
		Example: `  tulle proxies
  tulle proxies -o json`,
	}
	f := addCluster(c)
	out := addFormat(c, "text", "json", "yaml")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		cluster, err := f.open()
		if err != nil {
			return err
		}
		list, err := cluster.proxies(cmd.Context(), f.system)
		if out.value == "text" {
			return errors.Join(table(env.Stdout, proxyHeader(), proxyCells(list, env.Clock.Now())), err)
		}
		return errors.Join(out.write(env.Stdout, list), err)
	}
	return c
}

func proxyHeader() []string {
	return []string{"NODE", "ADDRESS", "REPLICA", "CONNECTED", "TAKEN", "PENDING", "LAST REFUSAL"}
}

func proxyCells(list []proxyRow, now time.Time) [][]string {
	cells := make([][]string, 0, len(list))
	for _, p := range list {
		nack := ""
		if p.LastNack != "" {
			nack = now.Sub(p.NackedAt).Round(time.Second).String() + " ago: " + shortened(p.LastNack)
		}
		cells = append(cells, []string{
			p.Node, p.Address, p.Replica, now.Sub(p.Since).Round(time.Second).String(), fmt.Sprintf("%d/%d", p.Acked, p.Resources), fmt.Sprint(p.Pending), nack,
		})
	}
	return cells
}

// controllerLabel and its value are the chart's on the control plane's pods.
const controllerLabel, controllerName = "app.kubernetes.io/name", "appmesh-controller"

// debugPort is where replicas serve their debug pages.
const debugPort = "8080"

// proxies asks all replicas. What those that answer say is returned together with an error for those that do not.
func (a *asked) proxies(ctx context.Context, namespace string) ([]proxyRow, error) {
	var pods corev1.PodList
	if err := a.List(ctx, &pods, client.InNamespace(namespace), client.MatchingLabels{controllerLabel: controllerName}); err != nil {
		return nil, fmt.Errorf("listing the control plane's pods: %w", err)
	}
	if len(pods.Items) == 0 {
		return nil, fmt.Errorf("no control plane runs in namespace %s (no pod with the label %s=%s)", namespace, controllerLabel, controllerName)
	}
	list := []proxyRow{}
	var errs []error
	for i := range pods.Items {
		pod := pods.Items[i].Name
		body, err := a.clients.CoreV1().Pods(namespace).ProxyGet("http", pod, debugPort, "/debug/proxies", nil).DoRaw(ctx)
		if err != nil {
			errs = append(errs, fmt.Errorf("replica %s does not answer: %w", pod, err))
			continue
		}
		rows, err := readProxies(pod, body)
		if err != nil {
			errs = append(errs, err)
		}
		list = append(list, rows...)
	}
	slices.SortFunc(list, func(a, b proxyRow) int { return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Address, b.Address)) })
	return list, errors.Join(errs...)
}

// readProxies reads a replica's page. It names the fields that it needs, for a replica may be older or newer than this program.
func readProxies(replica string, body []byte) ([]proxyRow, error) {
	var page []struct {
		Proxy struct{ NodeID, Address string }
		Since time.Time
		Types []struct {
			Pending   int
			LastNack  string
			NackedAt  time.Time
			Resources []struct{ Acked bool }
		}
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("replica %s: cannot read what it says of its proxies: %w", replica, err)
	}
	rows := make([]proxyRow, 0, len(page))
	for _, p := range page {
		row := proxyRow{Node: p.Proxy.NodeID, Address: p.Proxy.Address, Replica: replica, Since: p.Since}
		for _, t := range p.Types {
			row.Pending += t.Pending
			row.Resources += len(t.Resources)
			for _, r := range t.Resources {
				if r.Acked {
					row.Acked++
				}
			}
			if t.NackedAt.After(row.NackedAt) {
				row.LastNack, row.NackedAt = t.LastNack, t.NackedAt
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// describeProxies lists the proxies of a node or gateway.
func describeProxies(ctx context.Context, env Env, f *clusterFlags, cluster *asked, r *resource) error {
	list, err := cluster.proxies(ctx, f.system)
	if err != nil {
		env.complain("warning: %v\n", err)
	}
	arn, parseErr := mesh.ParseARN(r.ARN)
	if parseErr != nil {
		return nil //nolint:nilerr // an object that is not in force has no ARN, and no proxies
	}
	list = slices.DeleteFunc(list, func(p proxyRow) bool {
		key, err := mesh.ParseProxyID(p.Node)
		return err != nil || key != arn.Key
	})
	if _, err := fmt.Fprintf(env.Stdout, "  Proxies: %d\n", len(list)); err != nil || len(list) == 0 {
		return err
	}
	var text strings.Builder
	if err := table(&text, proxyHeader(), proxyCells(list, env.Clock.Now())); err != nil {
		return err
	}
	_, err = fmt.Fprint(env.Stdout, text.String())
	return err
}
