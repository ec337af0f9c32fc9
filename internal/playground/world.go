// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package playground

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/playground/cluster"
	"github.com/tulle-mesh/tulle/internal/playground/network"
	"github.com/tulle-mesh/tulle/internal/playground/scenario"
)

// clusterDomain is the DNS domain of the cluster that is played.
const clusterDomain = "cluster.local"

// world is everything inside: the network, the cluster, the programs.
type world struct {
	argv     []string
	dir      string
	scenario *scenario.Scenario
	clock    clock.Clock
	progress func(string)
	report   Report

	node    *network.Node
	cluster *cluster.Cluster
	plane   *controlPlane
	pods    []*pod
	numbers int
	load    *load
}

func newWorld(p plan, argv []string, now clock.Clock, progress func(string)) (*world, error) {
	w := &world{argv: argv, dir: p.Dir, scenario: p.Scenario, clock: now, progress: progress}
	w.report.Scenario = p.Scenario.Name
	for _, sub := range []string{"logs", "pods", "manifests", "staging"} {
		if err := os.Mkdir(filepath.Join(w.dir, sub), 0o755); err != nil { //nolint:gosec // pods' users read their hosts files
			return nil, fmt.Errorf("playground: %w", err)
		}
	}
	var err error
	if w.node, err = network.NewNode(); err != nil {
		return nil, err
	}
	var families []corev1.IPFamily
	for _, f := range p.Scenario.IPFamilies {
		families = append(families, corev1.IPFamily(f))
	}
	w.cluster = cluster.New(cluster.Options{Domain: clusterDomain, IPFamilies: families, Address: w.node.ServiceAddresses})
	return w, nil
}

// program is the path of one of the programs.
func (w *world) program(name string) string { return filepath.Join(w.dir, "bin", name) }

// publish brings everybody up to date with the cluster: the manifests, the names in pods, the Services' addresses.
func (w *world) publish(ctx context.Context) error {
	if err := w.writeManifests(); err != nil {
		return err
	}
	return w.updateNode(ctx)
}

func (w *world) writeManifests() error {
	_, err := w.cluster.Write(filepath.Join(w.dir, "manifests"), filepath.Join(w.dir, "staging"))
	return err
}

func (w *world) updateNode(ctx context.Context) error {
	for _, p := range w.pods {
		if err := rewrite(p.hosts, w.cluster.Hosts(p.object)); err != nil {
			return err
		}
	}
	ports, err := w.cluster.ServicePorts()
	if err != nil {
		return err
	}
	services := make([]network.Service, len(ports))
	for i, p := range ports {
		services[i] = network.Service{
			Name: p.Name, Address: p.Address, Protocol: strings.ToLower(string(p.Protocol)), Port: p.Port, Endpoints: p.Endpoints,
		}
	}
	return w.node.Serve(ctx, services)
}

// rewrite changes a file that others have mounted: in place, and so that who reads meanwhile finds all that stays.
func rewrite(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o644) //nolint:gosec // all users of the pod read it
	if err != nil {
		return fmt.Errorf("playground: %w", err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.WriteAt(data, 0); err != nil {
		return fmt.Errorf("playground: %w", err)
	}
	if err := f.Truncate(int64(len(data))); err != nil {
		return fmt.Errorf("playground: %w", err)
	}
	return nil
}
