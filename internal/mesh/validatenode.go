// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

func (c *checker) virtualNode(n *VirtualNode) {
	ports := make([]int32, 0, len(n.Spec.Listeners))
	for i := range n.Spec.Listeners {
		c.listener(listenerField(i), &n.Spec.Listeners[i])
		ports = append(ports, n.Spec.Listeners[i].PortMapping.Port)
	}
	c.uniquePorts(ports)
	c.serviceDiscovery(n)
	for i, b := range n.Spec.Backends {
		field := at("spec.backends", i)
		c.union(field, member{"virtualService", b.VirtualService != nil})
		if b.VirtualService != nil {
			c.name(field+".virtualService.virtualServiceName", b.VirtualService.VirtualServiceName)
			c.clientPolicy(field+".virtualService.clientPolicy", b.VirtualService.ClientPolicy)
		}
	}
	c.duplicateBackends(n)
	if n.Spec.BackendDefaults != nil {
		c.clientPolicy("spec.backendDefaults.clientPolicy", n.Spec.BackendDefaults.ClientPolicy)
	}
	c.logging(n.Spec.Logging)
}

func (c *checker) listener(field string, li *Listener) {
	c.portMapping(field+".portMapping", li.PortMapping, protocols())
	c.healthCheck(field+".healthCheck", li.HealthCheck, li.PortMapping, protocols())
	c.listenerTimeout(field+".timeout", li.Timeout, li.PortMapping.Protocol)
	c.listenerTLS(field+".tls", li.TLS)
	c.pool(field+".connectionPool", li.ConnectionPool, li.PortMapping.Protocol, false)
	if o := li.OutlierDetection; o != nil {
		field += ".outlierDetection"
		c.number(field+".maxServerErrors", o.MaxServerErrors, 1, math.MaxInt64)
		c.number(field+".maxEjectionPercent", int64(o.MaxEjectionPercent), 0, 100)
		c.requiredDuration(field+".interval", o.Interval)
		c.requiredDuration(field+".baseEjectionDuration", o.BaseEjectionDuration)
	}
}

func (c *checker) listenerTimeout(field string, t *ListenerTimeout, protocol Protocol) {
	if t == nil {
		return
	}
	members := []member{{"grpc", t.GRPC != nil}, {"http", t.HTTP != nil}, {"http2", t.HTTP2 != nil}, {"tcp", t.TCP != nil}}
	c.union(field, members...)
	c.protocolMember(field, protocol, members)
	c.httpTimeout(field+".http", t.HTTP)
	c.httpTimeout(field+".http2", t.HTTP2)
	c.httpTimeout(field+".grpc", t.GRPC)
	if t.TCP != nil {
		c.duration(field+".tcp.idle", t.TCP.Idle)
	}
}

func (c *checker) httpTimeout(field string, t *HTTPTimeout) {
	if t != nil {
		c.duration(field+".perRequest", t.PerRequest)
		c.duration(field+".idle", t.Idle)
	}
}

func (c *checker) serviceDiscovery(n *VirtualNode) {
	field := "spec.serviceDiscovery"
	sd := n.Spec.ServiceDiscovery
	if sd == nil {
		if len(n.Spec.Listeners) > 0 && !n.SelectsPods {
			c.fault(field, "", "is missing: a node with a listener says where its workloads are", "set serviceDiscovery, or a podSelector")
		}
		return
	}
	if len(n.Spec.Listeners) == 0 {
		c.ignored(field, "", "means nothing: the node has no listener", "add a listener, or remove it")
	}
	c.union(field, member{"awsCloudMap", sd.AWSCloudMap != nil}, member{"dns", sd.DNS != nil})
	if sd.DNS != nil {
		c.present(field+".dns.hostname", sd.DNS.Hostname)
		optionalOneOf(c, field+".dns.responseType", sd.DNS.ResponseType, DNSLoadBalancer, DNSEndpoints)
		c.ipPreference(field+".dns.ipPreference", sd.DNS.IPPreference)
	}
	if m := sd.AWSCloudMap; m != nil {
		field += ".awsCloudMap"
		c.text(field+".namespaceName", m.NamespaceName, 1024)
		c.text(field+".serviceName", m.ServiceName, 1024)
		c.ipPreference(field+".ipPreference", m.IPPreference)
		for i, a := range m.Attributes {
			c.cloudMapAttribute(at(field+".attributes", i), a)
		}
	}
}

func (c *checker) cloudMapAttribute(field string, a CloudMapAttribute) {
	c.text(field+".key", a.Key, 255)
	if strings.ContainsFunc(a.Key, notPrintable) {
		c.fault(field+".key", a.Key, "holds a blank or a character outside ASCII", "use letters, digits and ASCII punctuation")
	}
	c.text(field+".value", a.Value, 1024)
	if strings.ContainsFunc(strings.ReplaceAll(strings.ReplaceAll(a.Value, " ", ""), "\t", ""), notPrintable) || strings.HasPrefix(a.Value, " ") || strings.HasPrefix(a.Value, "\t") {
		c.fault(field+".value", a.Value, "begins with a blank or holds a character outside ASCII", "use letters, digits, ASCII punctuation, and blanks between them")
	}
}

func notPrintable(r rune) bool { return r < '!' || r > '~' }

// duplicateBackends finds services that are named twice. Source: App Mesh controller, the webhook of VirtualNode.
func (c *checker) duplicateBackends(n *VirtualNode) {
	seen := make(map[string]bool, len(n.Spec.Backends))
	for i, b := range n.Spec.Backends {
		if b.VirtualService == nil {
			continue
		}
		name := b.VirtualService.VirtualServiceName
		if name != "" && seen[name] {
			c.findings = append(c.findings, duplicateBackend(n, i, name))
		}
		seen[name] = true
	}
}

func duplicateBackend(n *VirtualNode, index int, service string) Finding {
	return Finding{
		Severity: SeverityWarning, Reason: ReasonDuplicate, Object: n.Source,
		Field: "spec.backends[" + strconv.Itoa(index) + "].virtualService.virtualServiceName", Value: shorten(service),
		Message: fmt.Sprintf("virtual node %q has virtual service %q among its backends twice; the stricter of the two policies holds, else the first", shorten(n.Name), shorten(service)),
		Mend:    "remove one of the two",
	}
}
