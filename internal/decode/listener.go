// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"math"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

func portMapping(in v1beta2.PortMapping) mesh.PortMapping {
	return mesh.PortMapping{Port: int32Of(in.Port), Protocol: mesh.Protocol(in.Protocol)}
}

func listener(in *v1beta2.Listener) mesh.Listener {
	out := mesh.Listener{PortMapping: portMapping(in.PortMapping)}
	if check := in.HealthCheck; check != nil {
		out.HealthCheck = &mesh.HealthCheckPolicy{
			HealthyThreshold:   int32Of(check.HealthyThreshold),
			UnhealthyThreshold: int32Of(check.UnhealthyThreshold),
			IntervalMillis:     check.IntervalMillis,
			TimeoutMillis:      check.TimeoutMillis,
			Path:               valueOf(check.Path),
			Port:               int32Of(valueOf(check.Port)),
			Protocol:           mesh.Protocol(check.Protocol),
		}
	}
	if timeout := in.Timeout; timeout != nil {
		out.Timeout = &mesh.ListenerTimeout{
			HTTP:  httpTimeout(timeout.HTTP),
			HTTP2: httpTimeout(timeout.HTTP2),
			GRPC:  grpcTimeout(timeout.GRPC),
			TCP:   tcpTimeout(timeout.TCP),
		}
	}
	if pool := in.ConnectionPool; pool != nil {
		out.ConnectionPool = &mesh.ConnectionPool{
			HTTP:  httpPool(pool.HTTP),
			HTTP2: http2Pool(pool.HTTP2),
			GRPC:  grpcPool(pool.GRPC),
		}
		if pool.TCP != nil {
			out.ConnectionPool.TCP = &mesh.TCPConnectionPool{MaxConnections: int32Of(pool.TCP.MaxConnections)}
		}
	}
	if outlier := in.OutlierDetection; outlier != nil {
		out.OutlierDetection = &mesh.OutlierDetection{
			MaxServerErrors:      outlier.MaxServerErrors,
			Interval:             duration(&outlier.Interval),
			BaseEjectionDuration: duration(&outlier.BaseEjectionDuration),
			MaxEjectionPercent:   int32Of(outlier.MaxEjectionPercent),
		}
	}
	out.TLS = listenerTLS(in.TLS)
	return out
}

func gatewayListener(in *v1beta2.VirtualGatewayListener) mesh.VirtualGatewayListener {
	out := mesh.VirtualGatewayListener{
		PortMapping: mesh.PortMapping{Port: int32Of(in.PortMapping.Port), Protocol: mesh.Protocol(in.PortMapping.Protocol)},
	}
	if check := in.HealthCheck; check != nil {
		out.HealthCheck = &mesh.HealthCheckPolicy{
			HealthyThreshold:   int32Of(valueOf(check.HealthyThreshold)),
			UnhealthyThreshold: int32Of(check.UnhealthyThreshold),
			IntervalMillis:     check.IntervalMillis,
			TimeoutMillis:      check.TimeoutMillis,
			Path:               valueOf(check.Path),
			Port:               int32Of(valueOf(check.Port)),
			Protocol:           mesh.Protocol(check.Protocol),
		}
	}
	if pool := in.ConnectionPool; pool != nil {
		out.ConnectionPool = &mesh.ConnectionPool{
			HTTP:  httpPool(pool.HTTP),
			HTTP2: http2Pool(pool.HTTP2),
			GRPC:  grpcPool(pool.GRPC),
		}
	}
	if tls := in.TLS; tls != nil {
		out.TLS = &mesh.ListenerTLS{Mode: mesh.TLSMode(tls.Mode), Certificate: listenerCertificate(tls.Certificate)}
		if tls.Validation != nil {
			out.TLS.Validation = new(validation(tls.Validation))
		}
	}
	return out
}

func httpPool(in *v1beta2.HTTPConnectionPool) *mesh.HTTPConnectionPool {
	if in == nil {
		return nil
	}
	return &mesh.HTTPConnectionPool{
		MaxConnections:     int32Of(in.MaxConnections),
		MaxPendingRequests: int32Ptr(in.MaxPendingRequests),
	}
}

func http2Pool(in *v1beta2.HTTP2ConnectionPool) *mesh.RequestConnectionPool {
	if in == nil {
		return nil
	}
	return &mesh.RequestConnectionPool{MaxRequests: int32Of(in.MaxRequests)}
}

func grpcPool(in *v1beta2.GRPCConnectionPool) *mesh.RequestConnectionPool {
	if in == nil {
		return nil
	}
	return &mesh.RequestConnectionPool{MaxRequests: int32Of(in.MaxRequests)}
}

func duration(in *v1beta2.Duration) *mesh.Duration {
	if in == nil {
		return nil
	}
	return &mesh.Duration{Value: in.Value, Unit: mesh.DurationUnit(in.Unit)}
}

func httpTimeout(in *v1beta2.HTTPTimeout) *mesh.HTTPTimeout {
	if in == nil {
		return nil
	}
	return &mesh.HTTPTimeout{PerRequest: duration(in.PerRequest), Idle: duration(in.Idle)}
}

func grpcTimeout(in *v1beta2.GRPCTimeout) *mesh.HTTPTimeout {
	if in == nil {
		return nil
	}
	return &mesh.HTTPTimeout{PerRequest: duration(in.PerRequest), Idle: duration(in.Idle)}
}

func tcpTimeout(in *v1beta2.TCPTimeout) *mesh.TCPTimeout {
	if in == nil {
		return nil
	}
	return &mesh.TCPTimeout{Idle: duration(in.Idle)}
}

// int32Of cuts a number to what the model holds. Every number that is cut lies far outside the limits of its field, which
// the model checks.
func int32Of(v int64) int32 { return int32(max(math.MinInt32, min(math.MaxInt32, v))) }

func int32Ptr(v *int64) *int32 {
	if v == nil {
		return nil
	}
	return new(int32Of(*v))
}

func copyPtr[T any](v *T) *T {
	if v == nil {
		return nil
	}
	return new(*v)
}

func texts[T ~string](in []T) []string {
	var out []string
	for _, v := range in {
		out = append(out, string(v))
	}
	return out
}
