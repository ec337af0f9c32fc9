// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	Node string `json:"node"`
	// Pod is namespace/name as the pod's token says; "" where proxies need not prove who they are.
	Pod     string    `json:"pod,omitempty"`
	Address string    `json:"address"`
	Replica string    `json:"replica"`
	Since   time.Time `json:"since"`
	// Resources and Acked count what the proxy was sent, and took.
	Resources int `json:"resources"`
	Acked     int `json:"acked"`
	Pending   int `json:"pending"`
	// Version stands for all that the proxy has taken: proxies with the same one have the same configuration. VersionSince is when it took the last of it.
	Version      string    `json:"version,omitempty"`
	VersionSince time.Time `json:"versionSince,omitzero"`
	// LastNack is the last refusal on the stream, and NackedAt its time.
	LastNack string    `json:"lastNack,omitempty"`
	NackedAt time.Time `json:"nackedAt,omitzero"`
	// Refused are the objects, by their names in the model, that what it still refuses was built from.
	Refused []string `json:"refused,omitempty"`
}

func newProxies(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "proxies",
		Short: "List the proxies that are connected to a cluster's control plane",
		Long: `Proxies asks every replica of the control plane for its proxies: which virtual node each stands for, since when, how much of its
configuration it has taken, in which version and since when, and its last refusal with the objects that it is about. It reads through the API server, and needs the right to do so (pods/proxy).`,
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
	return []string{"NODE", "POD", "REPLICA", "CONNECTED", "TAKEN", "VERSION", "SINCE", "LAST REFUSAL"}
}

func proxyCells(list []proxyRow, now time.Time) [][]string {
	cells := make([][]string, 0, len(list))
	for _, p := range list {
		cells = append(cells, []string{
			p.Node, cmp.Or(p.Pod, p.Address), p.Replica, ago(now, p.Since), fmt.Sprintf("%d/%d", p.Acked, p.Resources), p.Version, ago(now, p.VersionSince), p.nack(now),
		})
	}
	return cells
}

// ago is how long something has been so; "" if it never was.
func ago(now, since time.Time) string {
	if since.IsZero() {
		return ""
	}
	return now.Sub(since).Round(time.Second).String()
}

// nack is the last refusal in a row.
func (p *proxyRow) nack(now time.Time) string {
	if p.LastNack == "" {
		return ""
	}
	text := ago(now, p.NackedAt) + " ago: "
	if len(p.Refused) > 0 {
		text += strings.Join(p.Refused, ", ") + ": "
	}
	return text + shortened(p.LastNack)
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
	var page []proxyPage
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("replica %s: cannot read what it says of its proxies: %w", replica, err)
	}
	rows := make([]proxyRow, 0, len(page))
	for _, p := range page {
		rows = append(rows, p.row(replica))
	}
	return rows, nil
}

// proxyPage is what of a proxy on a replica's page is read.
type proxyPage struct {
	Proxy struct{ NodeID, Address, Identity string }
	Since time.Time
	Types []struct {
		TypeURL   string
		Pending   int
		AckedAt   time.Time
		LastNack  string
		NackedAt  time.Time
		Resources []struct {
			Name, Version string
			Acked         bool
			Refused       string
			Origin        []mesh.Key
		}
	}
}

func (p *proxyPage) row(replica string) proxyRow {
	row := proxyRow{Node: p.Proxy.NodeID, Address: p.Proxy.Address, Replica: replica, Since: p.Since}
	row.Pod, _ = strings.CutPrefix(p.Proxy.Identity, "pod ")
	taken := sha256.New()
	for _, t := range p.Types {
		row.Pending += t.Pending
		row.Resources += len(t.Resources)
		for _, r := range t.Resources {
			if r.Acked {
				row.Acked++
				_, _ = fmt.Fprintf(taken, "%s %s %s\n", t.TypeURL, r.Name, r.Version) // a hash takes everything
			}
			if r.Refused != "" {
				for _, key := range r.Origin {
					row.Refused = append(row.Refused, key.String())
				}
			}
		}
		if t.AckedAt.After(row.VersionSince) {
			row.VersionSince = t.AckedAt
		}
		if t.NackedAt.After(row.NackedAt) {
			row.LastNack, row.NackedAt = t.LastNack, t.NackedAt
		}
	}
	if row.Acked > 0 {
		row.Version = hex.EncodeToString(taken.Sum(nil))[:8]
	}
	slices.Sort(row.Refused)
	row.Refused = slices.Compact(row.Refused)
	return row
}
