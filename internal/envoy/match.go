// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"fmt"
	"regexp"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// everything matches any request.
func everything() *routev3.RouteMatch {
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
}

// routeMatch says which requests a route takes. On an error the match is as narrow as could be made of what is right, and must not be used to send requests on.
func routeMatch(r *mesh.RouteView) (*routev3.RouteMatch, error) {
	switch {
	case r.HTTP != nil:
		return httpMatch(r.HTTP)
	case r.GRPC != nil:
		return grpcMatch(r.GRPC)
	default:
		return everything(), nil
	}
}

func httpMatch(m *mesh.HTTPRouteMatch) (*routev3.RouteMatch, error) {
	p := &packer{}
	out := everything()
	switch {
	case m.Prefix != nil:
		out.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: *m.Prefix}
	case m.Path == nil:
	case m.Path.Exact != nil:
		out.PathSpecifier = &routev3.RouteMatch_Path{Path: *m.Path.Exact}
	case m.Path.Regex != nil:
		if r := p.regex(*m.Path.Regex); r != nil {
			out.PathSpecifier = &routev3.RouteMatch_SafeRegex{SafeRegex: r}
		}
	}
	if m.Method != "" {
		out.Headers = append(out.Headers, header(":method", exactly(m.Method)))
	}
	if m.Scheme != "" {
		out.Headers = append(out.Headers, header(":scheme", exactly(m.Scheme)))
	}
	for i := range m.Headers {
		out.Headers = append(out.Headers, p.header(&m.Headers[i]))
	}
	for i := range m.QueryParameters {
		out.QueryParameters = append(out.QueryParameters, queryParameter(&m.QueryParameters[i]))
	}
	return out, p.err()
}

// grpcMatch matches a gRPC request by the path that the protocol gives it.
func grpcMatch(m *mesh.GRPCRouteMatch) (*routev3.RouteMatch, error) {
	p := &packer{}
	out := everything()
	out.Grpc = &routev3.RouteMatch_GrpcRouteMatchOptions{}
	switch {
	case m.ServiceName != "" && m.MethodName != "":
		out.PathSpecifier = &routev3.RouteMatch_Path{Path: "/" + m.ServiceName + "/" + m.MethodName}
	case m.ServiceName != "":
		out.PathSpecifier = &routev3.RouteMatch_Prefix{Prefix: "/" + m.ServiceName + "/"}
	case m.MethodName != "":
		p.faults = append(p.faults, fmt.Errorf("method %q without a service name", clip(m.MethodName)))
	}
	for i := range m.Metadata {
		out.Headers = append(out.Headers, p.header(&m.Metadata[i]))
	}
	return out, p.err()
}

func queryParameter(q *mesh.QueryParameter) *routev3.QueryParameterMatcher {
	out := &routev3.QueryParameterMatcher{Name: q.Name}
	if q.Match != nil && q.Match.Exact != nil {
		out.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_StringMatch{StringMatch: exactly(*q.Match.Exact)}
	} else {
		out.QueryParameterMatchSpecifier = &routev3.QueryParameterMatcher_PresentMatch{PresentMatch: true}
	}
	return out
}

// header matches one header of a request, or one metadata entry of a gRPC call.
func (p *packer) header(h *mesh.HeaderMatch) *routev3.HeaderMatcher {
	out := &routev3.HeaderMatcher{Name: h.Name, InvertMatch: h.Invert}
	switch m := h.Match; {
	case m == nil:
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_PresentMatch{PresentMatch: true}
	case m.Range != nil:
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_RangeMatch{RangeMatch: &typev3.Int64Range{Start: m.Range.Start, End: m.Range.End}}
	default:
		out.HeaderMatchSpecifier = &routev3.HeaderMatcher_StringMatch{StringMatch: p.value(h.Name, m)}
	}
	return out
}

// value matches a header's text.
func (p *packer) value(name string, m *mesh.ValueMatch) *matcherv3.StringMatcher {
	switch {
	case m.Exact != nil:
		return exactly(*m.Exact)
	case m.Prefix != nil:
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: *m.Prefix}}
	case m.Suffix != nil:
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Suffix{Suffix: *m.Suffix}}
	case m.Regex != nil:
		return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: p.regex(*m.Regex)}}
	default:
		p.faults = append(p.faults, fmt.Errorf("the match of header %q says nothing", clip(name)))
		return exactly("")
	}
}

// regex takes an expression that Envoy compiles: RE2's syntax, which is Go's.
func (p *packer) regex(s string) *matcherv3.RegexMatcher {
	if _, err := regexp.Compile(s); err != nil {
		p.faults = append(p.faults, err)
		return nil
	}
	return &matcherv3.RegexMatcher{Regex: s}
}

func header(name string, value *matcherv3.StringMatcher) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{Name: name, HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: value}}
}

func exactly(s string) *matcherv3.StringMatcher {
	return &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: s}}
}
