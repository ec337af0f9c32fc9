// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package metrics_test

import (
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tulle-mesh/tulle/internal/metrics"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// value is that of a counter with one label, and -1 where there is none.
func value(t *testing.T, registry *prometheus.Registry, name, label string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == name && len(m.GetLabel()) == 1 && m.GetLabel()[0].GetValue() == label {
				return m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

func TestCountersStandAtZeroBeforeTheyFirstCount(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	m := metrics.New(registry)
	for _, name := range []string{"tulle_xds_pushes_total", "tulle_xds_resources_sent_total", "tulle_xds_sent_bytes_total", "tulle_xds_acks_total", "tulle_xds_nacks_total"} {
		for _, kind := range []string{"Cluster", "ClusterLoadAssignment", "Listener", "RouteConfiguration"} {
			if got := value(t, registry, name, kind); got != 0 {
				t.Errorf("%s of %s is %v, want 0", name, kind, got)
			}
		}
	}
	m.Nacked(xds.Nack{TypeURL: "type.googleapis.com/envoy.config.listener.v3.Listener"})
	if got := value(t, registry, "tulle_xds_nacks_total", "Listener"); got != 1 {
		t.Errorf("nacks of listeners: %v, want 1, under the name that stood at zero", got)
	}
}
