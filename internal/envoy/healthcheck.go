// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"net"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// healthChecks are the active checks that callers make of a listener, as its node asks for them.
func healthChecks(h *mesh.HealthCheckPolicy, hostname string, port int32) []*corev3.HealthCheck {
	interval := span(time.Duration(h.IntervalMillis) * time.Millisecond)
	check := &corev3.HealthCheck{
		Timeout:            span(time.Duration(h.TimeoutMillis) * time.Millisecond),
		Interval:           interval,
		UnhealthyThreshold: count(unsigned(h.UnhealthyThreshold)),
		HealthyThreshold:   count(unsigned(h.HealthyThreshold)),
		// An endpoint whose first check failed must come back although it gets no traffic.
		NoTrafficInterval: interval,
	}
	// An endpoint's own port may differ from the listener's, so the listener's is no port to check.
	if h.Port != 0 && h.Port != port {
		check.AltPort = count(unsigned(h.Port))
	}
	switch h.Protocol {
	case mesh.ProtocolGRPC:
		check.HealthChecker = &corev3.HealthCheck_GrpcHealthCheck_{GrpcHealthCheck: &corev3.HealthCheck_GrpcHealthCheck{}}
	case mesh.ProtocolTCP:
		check.HealthChecker = &corev3.HealthCheck_TcpHealthCheck_{TcpHealthCheck: &corev3.HealthCheck_TcpHealthCheck{}}
	default:
		http := &corev3.HealthCheck_HttpHealthCheck{Path: cmp.Or(h.Path, "/")}
		if hostname != "" {
			http.Host = net.JoinHostPort(hostname, portText(cmp.Or(h.Port, port)))
		}
		if h.Protocol == mesh.ProtocolHTTP2 {
			http.CodecClientType = typev3.CodecClientType_HTTP2
		}
		check.HealthChecker = &corev3.HealthCheck_HttpHealthCheck_{HttpHealthCheck: http}
	}
	return []*corev3.HealthCheck{check}
}
