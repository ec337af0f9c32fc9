// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package metrics counts what the control plane does, for Prometheus. It implements the Recorder interfaces of plane and xds; the commands make it.
package metrics

import (
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/tulle-mesh/tulle/internal/plane"
	"github.com/tulle-mesh/tulle/internal/version"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// Metrics are the collectors of one control plane.
type Metrics struct {
	connected   prometheus.Gauge
	connections prometheus.Counter
	cuts        *prometheus.CounterVec
	responses   *prometheus.CounterVec
	resources   *prometheus.CounterVec
	bytes       *prometheus.CounterVec
	acks        *prometheus.CounterVec
	nacks       *prometheus.CounterVec
	holds       prometheus.Counter
	latency     prometheus.Histogram
	builds      prometheus.Histogram
	views       prometheus.Counter
	sets        prometheus.Counter
}

var (
	_ xds.Recorder   = (*Metrics)(nil)
	_ plane.Recorder = (*Metrics)(nil)
)

// New makes the collectors and registers them.
func New(r prometheus.Registerer) *Metrics {
	counter := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	m := &Metrics{
		connected:   prometheus.NewGauge(prometheus.GaugeOpts{Name: "tulle_xds_connected_proxies", Help: "Proxies connected now."}),
		connections: counter("tulle_xds_connections_total", "Streams of proxies that joined."),
		cuts:        counters("tulle_xds_streams_cut_total", "Streams that the server ended since the client misbehaved.", "reason"),
		responses:   counters("tulle_xds_pushes_total", "Responses handed to the transport.", "type"),
		resources:   counters("tulle_xds_resources_sent_total", "Resources in those responses.", "type"),
		bytes:       counters("tulle_xds_sent_bytes_total", "Bytes of those responses, before TLS.", "type"),
		acks:        counters("tulle_xds_acks_total", "Responses that proxies took.", "type"),
		nacks:       counters("tulle_xds_nacks_total", "Responses that proxies refused.", "type"),
		holds:       counter("tulle_xds_holds_expired_total", "Routes and listeners sent though a cluster that they need had not finished warming."),
		latency: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tulle_xds_change_to_ack_seconds", Help: "From a change reaching the control plane to a proxy's acknowledgement, for each proxy.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30},
		}),
		builds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "tulle_build_seconds", Help: "Time of one step from a change of the model to configuration.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5},
		}),
		views: counter("tulle_build_views_total", "Views computed."),
		sets:  counter("tulle_build_endpoint_sets_total", "Endpoint sets computed."),
	}
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "tulle_build_info", Help: "Always 1; says which version runs.", ConstLabels: prometheus.Labels{"version": version.String()},
	})
	info.Set(1)
	// A counter that is missing until it first counts cannot be told from a wrong name, and rate() misses its first step.
	for _, kind := range []string{"Cluster", "ClusterLoadAssignment", "Listener", "RouteConfiguration"} {
		for _, c := range []*prometheus.CounterVec{m.responses, m.resources, m.bytes, m.acks, m.nacks} {
			c.WithLabelValues(kind)
		}
	}
	r.MustRegister(m.connected, m.connections, m.cuts, m.responses, m.resources, m.bytes, m.acks, m.nacks, m.holds, m.latency, m.builds, m.views, m.sets, info)
	return m
}

// Connected counts a proxy that joined.
func (m *Metrics) Connected(xds.Proxy, string) {
	m.connected.Inc()
	m.connections.Inc()
}

// Disconnected counts a proxy that left.
func (m *Metrics) Disconnected(xds.Proxy, string, error) { m.connected.Dec() }

// Sent counts a response.
func (m *Metrics) Sent(typeURL string, resources, bytes int) {
	t := short(typeURL)
	m.responses.WithLabelValues(t).Inc()
	m.resources.WithLabelValues(t).Add(float64(resources))
	m.bytes.WithLabelValues(t).Add(float64(bytes))
}

// Acked counts an acknowledgement, and how long the change took to reach the proxy.
func (m *Metrics) Acked(typeURL string, since time.Duration, measured bool) {
	m.acks.WithLabelValues(short(typeURL)).Inc()
	if measured {
		m.latency.Observe(since.Seconds())
	}
}

// Nacked counts a refusal.
func (m *Metrics) Nacked(n xds.Nack) { m.nacks.WithLabelValues(short(n.TypeURL)).Inc() }

// HoldExpired counts a resource that could be held back no longer.
func (m *Metrics) HoldExpired(xds.Proxy, *xds.Resource) { m.holds.Inc() }

// Cut counts a stream that the server ended.
func (m *Metrics) Cut(_ xds.Proxy, reason xds.CutReason) {
	m.cuts.WithLabelValues(string(reason)).Inc()
}

// Built counts a step of the plane.
func (m *Metrics) Built(views, sets int, took time.Duration) {
	m.views.Add(float64(views))
	m.sets.Add(float64(sets))
	m.builds.Observe(took.Seconds())
}

// short is the last part of a type URL: "Cluster".
func short(typeURL string) string { return typeURL[strings.LastIndexByte(typeURL, '.')+1:] }
