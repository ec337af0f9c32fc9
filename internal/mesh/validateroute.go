// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

func (c *checker) route(r *Route) {
	s := &r.Spec
	c.priority(r.field("priority"), s.Priority)
	c.union(strings.TrimSuffix(r.field(""), "."), member{"grpcRoute", s.GRPCRoute != nil}, member{"http2Route", s.HTTP2Route != nil}, member{"httpRoute", s.HTTPRoute != nil}, member{"tcpRoute", s.TCPRoute != nil})
	c.httpRoute(r.field("httpRoute"), s.HTTPRoute)
	c.httpRoute(r.field("http2Route"), s.HTTP2Route)
	if g := s.GRPCRoute; g != nil {
		field := r.field("grpcRoute")
		c.grpcMatch(field+".match", &g.Match)
		c.targets(field+".action.weightedTargets", g.Action.WeightedTargets)
		c.httpTimeout(field+".timeout", g.Timeout)
		c.retry(field+".retryPolicy", g.RetryPolicy, true)
	}
	if t := s.TCPRoute; t != nil {
		field := r.field("tcpRoute")
		if t.Match != nil {
			c.optionalPort(field+".match.port", t.Match.Port)
		}
		c.targets(field+".action.weightedTargets", t.Action.WeightedTargets)
		if t.Timeout != nil {
			c.duration(field+".timeout.idle", t.Timeout.Idle)
		}
	}
	for _, form := range r.forms() {
		c.findings = append(c.findings, matchFaults(r, &form)...)
	}
}

func (c *checker) priority(field string, p *int32) {
	if p != nil {
		c.number(field, int64(*p), 0, LowestPriority)
	}
}

func (c *checker) httpRoute(field string, h *HTTPRoute) {
	if h == nil {
		return
	}
	m := &h.Match
	c.union(field+".match", member{"path", m.Path != nil}, member{"prefix", m.Prefix != nil})
	c.absolute(field+".match.prefix", m.Prefix)
	c.path(field+".match.path", m.Path)
	c.queryParameters(field+".match.queryParameters", m.QueryParameters)
	c.method(field+".match.method", m.Method)
	optionalOneOf(c, field+".match.scheme", m.Scheme, "http", "https")
	c.headers(field+".match.headers", m.Headers)
	c.optionalPort(field+".match.port", m.Port)
	c.targets(field+".action.weightedTargets", h.Action.WeightedTargets)
	c.httpTimeout(field+".timeout", h.Timeout)
	c.retry(field+".retryPolicy", h.RetryPolicy, false)
}

func (c *checker) method(field, method string) {
	optionalOneOf(c, field, method, "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH")
}

func (c *checker) path(field string, p *HTTPPathMatch) {
	if p == nil {
		return
	}
	c.union(field, member{"exact", p.Exact != nil}, member{"regex", p.Regex != nil})
	c.optionalText(field+".exact", p.Exact, 255)
	c.absolute(field+".exact", p.Exact)
	c.optionalText(field+".regex", p.Regex, 255)
}

func (c *checker) queryParameters(field string, list []QueryParameter) {
	c.atMost(field, len(list), 10)
	for i, q := range list {
		if q.Match != nil && q.Match.Exact == nil {
			c.fault(at(field, i)+".match.exact", "", "is missing", "set it, or remove match to ask for the parameter alone")
		}
	}
}

// headers checks matches of headers or of gRPC's metadata, apart from what would make Envoy refuse them (see headerFaults).
func (c *checker) headers(field string, list []HeaderMatch) {
	c.atMost(field, len(list), 10)
	for i, h := range list {
		if h.Name != "" {
			c.text(at(field, i)+".name", h.Name, 50)
		}
		m := h.Match
		if m == nil {
			continue
		}
		match := at(field, i) + ".match"
		c.union(match, member{"exact", m.Exact != nil}, member{"prefix", m.Prefix != nil}, member{"range", m.Range != nil}, member{"regex", m.Regex != nil}, member{"suffix", m.Suffix != nil})
		c.optionalText(match+".exact", m.Exact, 255)
		c.optionalText(match+".prefix", m.Prefix, 255)
		c.optionalText(match+".regex", m.Regex, 255)
		c.optionalText(match+".suffix", m.Suffix, 255)
	}
}

func (c *checker) grpcMatch(field string, m *GRPCRouteMatch) {
	if m.MethodName != "" {
		c.text(field+".methodName", m.MethodName, 50)
		if m.ServiceName == "" {
			c.fault(field+".serviceName", "", "is missing: methodName needs it", "name the service of the method")
		}
	}
	c.headers(field+".metadata", m.Metadata)
	c.optionalPort(field+".port", m.Port)
}

func (c *checker) targets(field string, list []WeightedTarget) {
	if len(list) == 0 {
		c.fault(field, "", "is empty", "name 1 to 10 virtual nodes")
	}
	c.atMost(field, len(list), 10)
	total := int64(0)
	for i, t := range list {
		c.name(at(field, i)+".virtualNode", t.VirtualNode)
		c.number(at(field, i)+".weight", int64(t.Weight), 0, 100)
		c.optionalPort(at(field, i)+".port", t.Port)
		total += int64(t.Weight)
	}
	if total > 100 {
		c.fault(field, strconv.FormatInt(total, 10), fmt.Sprintf("has weights that sum to %d; at most 100 are allowed", total), "lower the weights")
	}
}

// retry checks a retry policy; gRPC's own events are for grpc routes alone.
func (c *checker) retry(field string, r *RetryPolicy, grpc bool) {
	if r == nil {
		return
	}
	c.number(field+".maxRetries", r.MaxRetries, 0, math.MaxInt64)
	c.requiredDuration(field+".perRetryTimeout", r.PerRetryTimeout)
	if len(r.HTTPRetryEvents)+len(r.TCPRetryEvents)+len(r.GRPCRetryEvents) == 0 {
		c.fault(field, "", "names no event", "name at least one event on which to try again")
	}
	c.events(field+".httpRetryEvents", r.HTTPRetryEvents, 25, "server-error", "gateway-error", "client-error", "stream-error")
	c.events(field+".tcpRetryEvents", r.TCPRetryEvents, 1, "connection-error")
	if !grpc && len(r.GRPCRetryEvents) > 0 {
		c.fault(field+".grpcRetryEvents", "", "is for grpc routes alone", "remove it")
		return
	}
	c.events(field+".grpcRetryEvents", r.GRPCRetryEvents, 5, "cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable")
}

func (c *checker) events(field string, list []string, limit int, allowed ...string) {
	c.atMost(field, len(list), limit)
	for i, event := range list {
		oneOf(c, at(field, i), event, allowed...)
	}
}
