// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"fmt"
	"strings"
)

// discovery is where a node's endpoints come from, resolved against the cluster.
type discovery struct {
	DiscoveryView
	// service is the Service whose slices hold the endpoints; nil where the endpoints are the node's workloads, or the Service does not exist.
	service *Service
	// workloads says that the endpoints are the node's own pods.
	workloads bool
	// field is the path of the node's choice of discovery.
	field string
}

// discover resolves how n is found. fallback is the mesh's choice of IP family.
func (l *lookup) discover(n *VirtualNode, fallback IPPreference) discovery {
	d := discovery{DiscoveryView: DiscoveryView{Type: DiscoveryEndpoints, IPPreference: fallback}, field: "spec.serviceDiscovery"}
	sd := n.Spec.ServiceDiscovery
	switch {
	case sd != nil && sd.DNS != nil:
		l.discoverDNS(n, sd.DNS, &d)
	case sd != nil && sd.AWSCloudMap != nil:
		d.field += ".awsCloudMap"
		d.workloads = true
		d.Hostname = sd.AWSCloudMap.ServiceName + "." + sd.AWSCloudMap.NamespaceName
		d.IPPreference = prefer(sd.AWSCloudMap.IPPreference, fallback)
		if !n.SelectsPods {
			l.report(Finding{
				Severity: SeverityWarning, Reason: ReasonNoTraffic, Object: n.Source, Field: d.field, Value: d.Hostname,
				Message: fmt.Sprintf("virtual node %q is found through awsCloudMap, which is served from the pods that the node selects, and it selects none", n.Name),
				Mend:    "give the node a podSelector, or a DNS hostname",
			})
		}
	default:
		d.workloads = true
		d.Hostname = n.Name
		if !n.SelectsPods {
			l.report(Finding{
				Severity: SeverityError, Reason: ReasonInvalid, Object: n.Source, Field: d.field,
				Message: fmt.Sprintf("virtual node %q can be called and says neither where its workloads are nor which pods they are", n.Name),
				Mend:    "set serviceDiscovery, or a podSelector",
			})
		}
	}
	return d
}

func (l *lookup) discoverDNS(n *VirtualNode, dns *DNSServiceDiscovery, d *discovery) {
	d.field += ".dns"
	d.Hostname = dns.Hostname
	d.IPPreference = prefer(dns.IPPreference, d.IPPreference)
	key, full, ok := serviceNamed(dns.Hostname, n.Source.Namespace, l.serviceSuffix())
	if ok {
		service, exists := find[*Service](l, key)
		if exists && service.ExternalName == "" {
			d.service = service
			return
		}
		if !exists && full {
			l.report(Finding{
				Severity: SeverityError, Reason: ReasonRefNotFound, Object: n.Source, Field: d.field + ".hostname", Value: dns.Hostname,
				Message: fmt.Sprintf("virtual node %q is found through the Service %s/%s, which does not exist, so it has no endpoints", n.Name, key.Parent, key.Name),
				Mend:    "create the Service, or name one that exists",
			})
			return
		}
	}
	if ownHost(dns.Hostname) {
		l.report(Finding{
			Severity: SeverityError, Reason: ReasonInvalid, Object: n.Source, Field: d.field + ".hostname", Value: dns.Hostname,
			Message: fmt.Sprintf("virtual node %q is to be found at a host that means the caller's own machine, where a proxy's administration listens, so it has no endpoints", n.Name),
			Mend:    "name the Service or host that the workload has",
		})
		return
	}
	d.Type = DiscoveryLogicalDNS
	if dns.ResponseType == DNSEndpoints {
		d.Type = DiscoveryStrictDNS
	}
}

// prefer returns the first choice of IP family that says something.
func prefer(own, fallback IPPreference) IPPreference {
	if own != "" {
		return own
	}
	return fallback
}

// ownPreference is the node's own choice of IP family, empty for none.
func (n *VirtualNode) ownPreference() IPPreference {
	switch sd := n.Spec.ServiceDiscovery; {
	case sd == nil:
		return ""
	case sd.DNS != nil:
		return sd.DNS.IPPreference
	case sd.AWSCloudMap != nil:
		return sd.AWSCloudMap.IPPreference
	}
	return ""
}

// preference is the mesh's choice of IP family, empty for none.
func (m *Mesh) preference() IPPreference {
	if m == nil || m.Spec.ServiceDiscovery == nil {
		return ""
	}
	return m.Spec.ServiceDiscovery.IPPreference
}

// maxHost is the longest host name that DNS knows, with the last dot.
const maxHost = 254

// serviceNamed says which Service of the cluster a host name means when it is asked for from namespace, as DNS in the cluster would read it; suffix is lookup.serviceSuffix. full says that the name cannot mean
// anything else. Names with more labels, such as those of single pods, are no Service's.
func serviceNamed(host, namespace, suffix string) (key Key, full, ok bool) {
	if len(host) > maxHost {
		return Key{}, false, false
	}
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	if name, full = strings.CutSuffix(name, suffix); !full {
		if rest, cut := strings.CutSuffix(name, ".svc"); cut && strings.Count(rest, ".") == 1 {
			name = rest
		}
	}
	service, in, qualified := strings.Cut(name, ".")
	if !qualified && !full {
		in = namespace
	}
	if service == "" || in == "" || strings.Contains(in, ".") {
		return Key{}, false, false
	}
	return ServiceKey(in, service), full, true
}
