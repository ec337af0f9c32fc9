// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

func valueMatch(in *v1beta2.ValueMatch) *mesh.ValueMatch {
	if in == nil {
		return nil
	}
	out := &mesh.ValueMatch{
		Exact:  copyPtr(in.Exact),
		Prefix: copyPtr(in.Prefix),
		Suffix: copyPtr(in.Suffix),
		Regex:  copyPtr(in.Regex),
	}
	if in.Range != nil {
		out.Range = &mesh.MatchRange{Start: in.Range.Start, End: in.Range.End}
	}
	return out
}

func headers(in []v1beta2.HTTPRouteHeader) []mesh.HeaderMatch {
	var out []mesh.HeaderMatch
	for _, h := range in {
		out = append(out, mesh.HeaderMatch{Name: h.Name, Invert: valueOf(h.Invert), Match: valueMatch(h.Match)})
	}
	return out
}

func metadata(in []v1beta2.GRPCRouteMetadata) []mesh.HeaderMatch {
	var out []mesh.HeaderMatch
	for _, m := range in {
		out = append(out, mesh.HeaderMatch{Name: m.Name, Invert: valueOf(m.Invert), Match: valueMatch(m.Match)})
	}
	return out
}

func pathMatch(in *v1beta2.HTTPPathMatch) *mesh.HTTPPathMatch {
	if in == nil {
		return nil
	}
	return &mesh.HTTPPathMatch{Exact: copyPtr(in.Exact), Regex: copyPtr(in.Regex)}
}

func queryParameters(in []v1beta2.HTTPQueryParameter) []mesh.QueryParameter {
	var out []mesh.QueryParameter
	for _, q := range in {
		parameter := mesh.QueryParameter{Name: q.Name}
		if q.Match != nil {
			parameter.Match = &mesh.QueryParameterMatch{Exact: copyPtr(q.Match.Exact)}
		}
		out = append(out, parameter)
	}
	return out
}

func hostnameMatch(in *v1beta2.GatewayRouteHostnameMatch) *mesh.HostnameMatch {
	if in == nil {
		return nil
	}
	return &mesh.HostnameMatch{Exact: copyPtr(in.Exact), Suffix: copyPtr(in.Suffix)}
}

func hostnameRewrite(in *v1beta2.GatewayRouteHostnameRewrite) *mesh.HostnameRewrite {
	if in == nil {
		return nil
	}
	return &mesh.HostnameRewrite{DefaultTargetHostname: mesh.DefaultRewrite(valueOf(in.DefaultTargetHostname))}
}

func httpRetry(in *v1beta2.HTTPRetryPolicy) *mesh.RetryPolicy {
	if in == nil {
		return nil
	}
	return &mesh.RetryPolicy{
		MaxRetries:      in.MaxRetries,
		PerRetryTimeout: duration(&in.PerRetryTimeout),
		HTTPRetryEvents: texts(in.HTTPRetryEvents),
		TCPRetryEvents:  texts(in.TCPRetryEvents),
	}
}

func grpcRetry(in *v1beta2.GRPCRetryPolicy) *mesh.RetryPolicy {
	if in == nil {
		return nil
	}
	return &mesh.RetryPolicy{
		MaxRetries:      in.MaxRetries,
		PerRetryTimeout: duration(&in.PerRetryTimeout),
		HTTPRetryEvents: texts(in.HTTPRetryEvents),
		TCPRetryEvents:  texts(in.TCPRetryEvents),
		GRPCRetryEvents: texts(in.GRPCRetryEvents),
	}
}
