// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import "strings"

func (c *checker) virtualGateway(s *VirtualGatewaySpec) {
	if len(s.Listeners) == 0 {
		c.fault("spec.listeners", "", "is empty", "add a listener")
	}
	allowed := []Protocol{ProtocolHTTP, ProtocolHTTP2, ProtocolGRPC}
	ports := make([]int32, 0, len(s.Listeners))
	for i, li := range s.Listeners {
		field := listenerField(i)
		c.portMapping(field+".portMapping", li.PortMapping, allowed)
		c.healthCheck(field+".healthCheck", li.HealthCheck, li.PortMapping, allowed)
		c.listenerTLS(field+".tls", li.TLS)
		c.pool(field+".connectionPool", li.ConnectionPool, li.PortMapping.Protocol, true)
		ports = append(ports, li.PortMapping.Port)
	}
	c.uniquePorts(ports)
	if s.BackendDefaults != nil {
		c.clientPolicy("spec.backendDefaults.clientPolicy", s.BackendDefaults.ClientPolicy)
	}
	c.logging(s.Logging)
}

func (c *checker) gatewayRoute(r *GatewayRoute) {
	s := &r.Spec
	c.priority("spec.priority", s.Priority)
	c.union("spec", member{"grpcRoute", s.GRPCRoute != nil}, member{"http2Route", s.HTTP2Route != nil}, member{"httpRoute", s.HTTPRoute != nil})
	c.httpGatewayRoute("spec.httpRoute", s.HTTPRoute)
	c.httpGatewayRoute("spec.http2Route", s.HTTP2Route)
	if g := s.GRPCRoute; g != nil {
		c.grpcGatewayRoute("spec.grpcRoute", g)
	}
}

func (c *checker) httpGatewayRoute(field string, h *HTTPGatewayRoute) {
	if h == nil {
		return
	}
	m := &h.Match
	switch {
	case m.Prefix != nil && m.Path != nil:
		c.fault(field+".match", "path, prefix", "holds path and prefix, of which only one is allowed", "set one of them")
	case m.Prefix == nil && m.Path == nil && m.Hostname == nil:
		c.fault(field+".match", "", "holds none of hostname, path, prefix", "set at least one of them")
	}
	c.absolute(field+".match.prefix", m.Prefix)
	if m.Prefix != nil && (strings.HasPrefix(*m.Prefix, "/aws-appmesh") || strings.HasPrefix(*m.Prefix, "/aws-app-mesh")) {
		c.fault(field+".match.prefix", *m.Prefix, "begins with a reserved name", "use another prefix than /aws-appmesh and /aws-app-mesh")
	}
	c.path(field+".match.path", m.Path)
	c.queryParameters(field+".match.queryParameters", m.QueryParameters)
	c.method(field+".match.method", m.Method)
	c.hostname(field+".match.hostname", m.Hostname)
	c.headers(field+".match.headers", m.Headers)
	c.unusable(field+".match", httpFaults(m.Path, m.QueryParameters, m.Headers))
	c.optionalPort(field+".match.port", m.Port)
	c.gatewayTarget(field+".action.target", &h.Action.Target)
	c.httpRewrite(field+".action.rewrite", h.Action.Rewrite, m)
}

// unusable notes the conditions that Envoy could not evaluate.
func (c *checker) unusable(field string, faults []matchFault) {
	for _, f := range faults {
		c.fault(field+"."+f.field, f.value, "cannot be used: "+f.fault, f.mend)
	}
}

func (c *checker) hostname(field string, h *HostnameMatch) {
	if h == nil {
		return
	}
	c.union(field, member{"exact", h.Exact != nil}, member{"suffix", h.Suffix != nil})
	c.optionalText(field+".exact", h.Exact, 253)
	c.optionalText(field+".suffix", h.Suffix, 253)
}

func (c *checker) gatewayTarget(field string, t *GatewayRouteTarget) {
	c.name(field+".virtualService.virtualServiceName", t.VirtualService.VirtualServiceName)
	c.optionalPort(field+".port", t.Port)
}

func (c *checker) httpRewrite(field string, r *HTTPGatewayRouteRewrite, m *HTTPGatewayRouteMatch) {
	if r == nil {
		return
	}
	switch {
	case r.Prefix == nil && r.Path == nil && r.Hostname == nil:
		c.fault(field, "", "holds none of hostname, path, prefix", "set at least one of them, or remove rewrite")
	case r.Prefix != nil && r.Path != nil:
		c.fault(field, "path, prefix", "holds path and prefix, of which only one is allowed", "set one of them")
	}
	c.hostnameRewrite(field+".hostname", r.Hostname)
	if r.Path != nil {
		c.optionalText(field+".path.exact", r.Path.Exact, 255)
		if r.Path.Exact == nil {
			c.fault(field+".path.exact", "", "is missing", "set it")
		}
		if m.Path == nil {
			c.fault(field+".path", "", "needs a match on the whole path", "set match.path, or rewrite the prefix")
		}
	}
	if p := r.Prefix; p != nil {
		c.prefixRewrite(field+".prefix", p)
		if m.Path != nil {
			c.fault(field+".prefix", "", "needs a match on a prefix", "set match.prefix, or rewrite the path")
		}
	}
}

func (c *checker) prefixRewrite(field string, p *PrefixRewrite) {
	c.union(field, member{"defaultPrefix", p.DefaultPrefix != ""}, member{"value", p.Value != nil})
	optionalOneOf(c, field+".defaultPrefix", p.DefaultPrefix, RewriteEnabled, RewriteDisabled)
	c.optionalText(field+".value", p.Value, 255)
	if p.Value != nil && (!strings.HasPrefix(*p.Value, "/") || !strings.HasSuffix(*p.Value, "/")) {
		c.fault(field+".value", *p.Value, "does not begin and end with \"/\"", "write it as /.../")
	}
}

func (c *checker) hostnameRewrite(field string, h *HostnameRewrite) {
	if h != nil {
		optionalOneOf(c, field+".defaultTargetHostname", h.DefaultTargetHostname, RewriteEnabled, RewriteDisabled)
	}
}

func (c *checker) grpcGatewayRoute(field string, g *GRPCGatewayRoute) {
	m := &g.Match
	if m.ServiceName == "" && m.Hostname == nil {
		c.fault(field+".match", "", "holds none of hostname, serviceName", "set at least one of them")
	}
	if strings.HasPrefix(m.ServiceName, "aws.app-mesh") || strings.HasPrefix(m.ServiceName, "aws.appmesh") {
		c.fault(field+".match.serviceName", m.ServiceName, "begins with a reserved name", "use another name than aws.appmesh and aws.app-mesh")
	}
	c.hostname(field+".match.hostname", m.Hostname)
	c.headers(field+".match.metadata", m.Metadata)
	c.unusable(field+".match", headerFaults("metadata", m.Metadata))
	c.optionalPort(field+".match.port", m.Port)
	c.gatewayTarget(field+".action.target", &g.Action.Target)
	if g.Action.Rewrite != nil {
		c.hostnameRewrite(field+".action.rewrite.hostname", g.Action.Rewrite.Hostname)
	}
}
