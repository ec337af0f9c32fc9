// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package simulate

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// http finds the route of a request.
func (c *Config) http(m *hcmv3.HttpConnectionManager, r *Request) (Landing, error) {
	name := m.GetRds().GetRouteConfigName()
	config := c.routes[name]
	if config == nil {
		return Landing{}, fmt.Errorf("no route configuration %q", name)
	}
	route, err := findRoute(virtualHost(config, r.Host), r)
	if err != nil {
		return Landing{}, err
	}
	if route == nil {
		return Landing{Status: 404}, nil
	}
	if direct := route.GetDirectResponse(); direct != nil {
		return Landing{Status: direct.GetStatus()}, nil
	}
	if one := route.GetRoute().GetCluster(); one != "" {
		return c.landing(map[string]uint32{one: 1})
	}
	shares := map[string]uint32{}
	for _, w := range route.GetRoute().GetWeightedClusters().GetClusters() {
		shares[w.GetName()] += w.GetWeight().GetValue()
	}
	return c.landing(shares)
}

// virtualHost finds the host's own virtual host, else the one for every host; nil for none.
func virtualHost(config *routev3.RouteConfiguration, host string) *routev3.VirtualHost {
	for _, domain := range []string{strings.ToLower(host), "*"} {
		for _, vh := range config.GetVirtualHosts() {
			if slices.ContainsFunc(vh.GetDomains(), func(d string) bool { return strings.ToLower(d) == domain }) {
				return vh
			}
		}
	}
	return nil
}

func findRoute(vh *routev3.VirtualHost, r *Request) (*routev3.Route, error) {
	for _, route := range vh.GetRoutes() {
		hit, err := matches(route.GetMatch(), r)
		if err != nil {
			return nil, fmt.Errorf("virtual host %q: %w", vh.GetName(), err)
		}
		if hit {
			return route, nil
		}
	}
	return nil, nil //nolint:nilnil // no route is an answer of its own: 404
}

func matches(m *routev3.RouteMatch, r *Request) (bool, error) {
	path, query, _ := strings.Cut(cmp.Or(r.Path, "/"), "?")
	hit, err := matchesPath(m, path)
	if err != nil || !hit {
		return false, err
	}
	if m.GetGrpc() != nil && !strings.HasPrefix(r.Headers["content-type"], "application/grpc") {
		return false, nil
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return false, err
	}
	for _, q := range m.GetQueryParameters() {
		value, present := values[q.GetName()]
		if !present || q.GetStringMatch() != nil && value[0] != q.GetStringMatch().GetExact() {
			return false, nil
		}
	}
	for _, h := range m.GetHeaders() {
		hit, err := matchesHeader(h, r)
		if err != nil || !hit {
			return false, err
		}
	}
	return true, nil
}

func matchesPath(m *routev3.RouteMatch, path string) (bool, error) {
	switch p := m.GetPathSpecifier().(type) {
	case *routev3.RouteMatch_Prefix:
		return strings.HasPrefix(path, p.Prefix), nil
	case *routev3.RouteMatch_Path:
		return path == p.Path, nil
	case *routev3.RouteMatch_SafeRegex:
		return whole(p.SafeRegex.GetRegex(), path)
	default:
		return false, fmt.Errorf("path matcher %T", p)
	}
}

func whole(expression, text string) (bool, error) {
	re, err := regexp.Compile("^(?:" + expression + ")$")
	return err == nil && re.MatchString(text), err
}

func matchesHeader(h *routev3.HeaderMatcher, r *Request) (bool, error) {
	value, present := r.header(h.GetName())
	switch m := h.GetHeaderMatchSpecifier().(type) {
	case *routev3.HeaderMatcher_PresentMatch:
		return present != h.GetInvertMatch(), nil
	case *routev3.HeaderMatcher_RangeMatch:
		n, err := strconv.ParseInt(value, 10, 64)
		hit := err == nil && n >= m.RangeMatch.GetStart() && n < m.RangeMatch.GetEnd()
		return present && hit != h.GetInvertMatch(), nil
	case *routev3.HeaderMatcher_StringMatch:
		hit, err := matchesText(m.StringMatch, value)
		return present && hit != h.GetInvertMatch(), err
	default:
		return false, fmt.Errorf("header matcher %T", m)
	}
}

func (r *Request) header(name string) (string, bool) {
	switch name {
	case ":method":
		return cmp.Or(r.Method, "GET"), true
	case ":scheme":
		return cmp.Or(r.Scheme, "http"), true
	default:
		value, present := r.Headers[strings.ToLower(name)]
		return value, present
	}
}

func matchesText(m *matcherv3.StringMatcher, value string) (bool, error) {
	switch p := m.GetMatchPattern().(type) {
	case *matcherv3.StringMatcher_Exact:
		return value == p.Exact, nil
	case *matcherv3.StringMatcher_Prefix:
		return strings.HasPrefix(value, p.Prefix), nil
	case *matcherv3.StringMatcher_Suffix:
		return strings.HasSuffix(value, p.Suffix), nil
	case *matcherv3.StringMatcher_SafeRegex:
		return whole(p.SafeRegex.GetRegex(), value)
	default:
		return false, fmt.Errorf("text matcher %T", p)
	}
}
