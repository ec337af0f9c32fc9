// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

func dnsNode(hostname string, listeners ...string) *mesh.VirtualNode {
	n := aNode("a", listeners...)
	n.Spec.ServiceDiscovery.DNS.Hostname = hostname
	return n
}

func TestHostnamesThatNameAServiceOfTheClusterAreEndpoints(t *testing.T) {
	t.Parallel()
	alias := aKubernetesService("alias", "", 80)
	alias.ExternalName = "example.com"
	m := newModel(aMesh(), aClient("c", "s"), aService("s", byNode("a")), aKubernetesService("api", "10.0.0.1", 80), alias, aSlice("api", "api-1", 80, "10.1.0.1"))
	const missing = "error RefNotFound VirtualNode/a spec.serviceDiscovery.dns.hostname"
	for hostname, c := range map[string]struct {
		want     mesh.DiscoveryType
		findings []string
	}{
		"api":                              {mesh.DiscoveryEndpoints, nil},
		"api.prod":                         {mesh.DiscoveryEndpoints, nil},
		"api.prod.svc":                     {mesh.DiscoveryEndpoints, nil},
		"api.prod.svc.cluster.local":       {mesh.DiscoveryEndpoints, nil},
		"API.Prod.Svc.Cluster.Local.":      {mesh.DiscoveryEndpoints, nil},
		"api.prod.":                        {mesh.DiscoveryEndpoints, nil},
		"api.other":                        {mesh.DiscoveryLogicalDNS, nil},
		"other":                            {mesh.DiscoveryLogicalDNS, nil},
		"other.prod.svc":                   {mesh.DiscoveryLogicalDNS, nil},
		"other.prod.svc.cluster.local":     {mesh.DiscoveryEndpoints, []string{missing}},
		"pod-0.api.prod.svc":               {mesh.DiscoveryLogicalDNS, nil},
		"p.api.prod.svc.cluster.local":     {mesh.DiscoveryLogicalDNS, nil},
		"api.svc":                          {mesh.DiscoveryLogicalDNS, nil},
		"x.api.prod.svc":                   {mesh.DiscoveryLogicalDNS, nil},
		"api.svc.cluster.local":            {mesh.DiscoveryLogicalDNS, nil},
		"api.prod.svc.elsewhere.local":     {mesh.DiscoveryLogicalDNS, nil},
		"alias.prod.svc.cluster.local":     {mesh.DiscoveryLogicalDNS, nil},
		"example.com":                      {mesh.DiscoveryLogicalDNS, nil},
		"..svc.cluster.local":              {mesh.DiscoveryLogicalDNS, nil},
		".svc.cluster.local":               {mesh.DiscoveryLogicalDNS, nil},
		".":                                {mesh.DiscoveryLogicalDNS, nil},
		"":                                 {mesh.DiscoveryLogicalDNS, nil},
		strings.Repeat("a", 300) + ".prod": {mesh.DiscoveryLogicalDNS, nil},
	} {
		t.Run(hostname, func(t *testing.T) {
			t.Parallel()
			v, findings := m.with(dnsNode(hostname, "http/80")).view(t, "c")
			if got := v.Nodes[0].Discovery; got.Type != c.want || got.Hostname != hostname {
				t.Errorf("got %+v, want type %s and the hostname as it was written", got, c.want)
			}
			wantFindings(t, findings, c.findings...)
			var sets []mesh.EndpointSetKey
			if c.want == mesh.DiscoveryEndpoints {
				sets = []mesh.EndpointSetKey{{Mesh: "m", Node: "a", Port: 80, Protocol: mesh.ProtocolHTTP}}
			}
			if diff := cmp.Diff(sets, v.EndpointSets()); diff != "" {
				t.Errorf("endpoint sets (-want +got):\n%s", diff)
			}
		})
	}
}

func TestOtherHostnamesKeepTheResponseType(t *testing.T) {
	t.Parallel()
	for response, want := range map[mesh.DNSResponseType]mesh.DiscoveryType{
		"": mesh.DiscoveryLogicalDNS, mesh.DNSLoadBalancer: mesh.DiscoveryLogicalDNS, mesh.DNSEndpoints: mesh.DiscoveryStrictDNS,
	} {
		n := dnsNode("example.com", "http/80")
		n.Spec.ServiceDiscovery.DNS.ResponseType = response
		v, _ := newModel(aMesh(), aClient("c", "s"), aService("s", byNode("a")), n).view(t, "c")
		if got := v.Nodes[0].Discovery.Type; got != want {
			t.Errorf("response type %q becomes %s, want %s", response, got, want)
		}
	}
}

func TestAShortNameWithoutANamespaceIsNoService(t *testing.T) {
	t.Parallel()
	n := dnsNode("api", "http/80")
	n.Source.Namespace = ""
	v, _ := newModel(aMesh(), aClient("c", "s"), aService("s", byNode("a")), n, aKubernetesService("api", "", 80)).view(t, "c")
	if got := v.Nodes[0].Discovery.Type; got != mesh.DiscoveryLogicalDNS {
		t.Errorf("got %s, want DNS", got)
	}
}

// endpoints writes a set as "zone address draining".
func endpoints(set *mesh.EndpointSet) []string {
	var list []string
	for _, e := range set.Endpoints {
		text := e.Address.String()
		if e.Zone != "" {
			text = e.Zone + " " + text
		}
		if e.Draining {
			text += " draining"
		}
		list = append(list, text)
	}
	return list
}

func endpoint(address, zone string, ready, serving, terminating bool) mesh.Endpoint {
	return mesh.Endpoint{Address: netip.MustParseAddr(address), Zone: zone, Ready: ready, Serving: serving, Terminating: terminating}
}

func TestEndpointsOfAService(t *testing.T) {
	t.Parallel()
	sliceOf := func(name string, ports []mesh.EndpointPort, list ...mesh.Endpoint) *mesh.EndpointSlice {
		return &mesh.EndpointSlice{Namespace: "prod", ServiceName: "api", Name: name, Ports: ports, Endpoints: list}
	}
	named := aKubernetesService("api", "10.0.0.1", 0)
	named.Ports = []mesh.ServicePort{{Name: "admin", Port: 9901}, {Name: "web", Port: 80}}
	at8080 := []mesh.EndpointPort{{Port: 8080}}
	both := dnsNode("api.prod", "http/80", "http/8080")
	preferring := func(p mesh.IPPreference) *mesh.VirtualNode {
		n := dnsNode("api.prod", "http/80", "http/8080")
		n.Spec.ServiceDiscovery.DNS.IPPreference = p
		return n
	}
	meshPreferring := aMesh()
	meshPreferring.Spec.ServiceDiscovery = &mesh.MeshServiceDiscovery{IPPreference: mesh.IPv6Only}
	dual := newModel(
		aMesh(), aKubernetesService("api", "10.0.0.1", 80),
		sliceOf("v4", at8080, endpoint("10.1.0.1", "", true, true, false)), sliceOf("v6", at8080, endpoint("fd00::1", "", true, true, false)),
	)
	for name, c := range map[string]struct {
		model    model
		want     []string
		findings []string
	}{
		"ready ones take requests, serving ones that terminate drain, others are not there": {
			newModel(aMesh(), both, aKubernetesService("api", "10.0.0.1", 80), sliceOf("x", at8080,
				endpoint("10.1.0.4", "", true, true, false), endpoint("10.1.0.3", "", false, true, true), endpoint("10.1.0.2", "", false, false, true), endpoint("10.1.0.1", "", false, false, false))),
			[]string{"10.1.0.3:8080 draining", "10.1.0.4:8080"},
			nil,
		},
		"several slices are one set, sorted by zone and address, each address once": {
			newModel(aMesh(), both, aKubernetesService("api", "10.0.0.1", 80),
				sliceOf("x", at8080, endpoint("10.1.0.9", "b", true, true, false), endpoint("10.1.0.10", "a", false, true, true)),
				sliceOf("y", at8080, endpoint("10.1.0.2", "b", true, true, false), endpoint("10.1.0.10", "a", true, true, false))),
			[]string{"a 10.1.0.10:8080", "b 10.1.0.2:8080", "b 10.1.0.9:8080"},
			nil,
		},
		"the Service's port of the listener's number leads through its name to the pods' port": {
			newModel(aMesh(), both, named, sliceOf("x", []mesh.EndpointPort{{Name: "admin", Port: 1}, {Name: "web", Port: 8080}}, endpoint("10.1.0.1", "", true, true, false))),
			[]string{"10.1.0.1:8080"},
			nil,
		},
		"without a Service port of that number the listener's own port holds": {
			newModel(aMesh(), both, aKubernetesService("api", "10.0.0.1", 9999), sliceOf("x", at8080, endpoint("10.1.0.1", "", true, true, false))),
			[]string{"10.1.0.1:80"},
			nil,
		},
		"a slice without the Service's port gives the listener's own": {
			newModel(aMesh(), both, named, sliceOf("x", at8080, endpoint("10.1.0.1", "", true, true, false))),
			[]string{"10.1.0.1:80"},
			nil,
		},
		"a port that the pods' proxies do not capture is a finding": {
			newModel(aMesh(), dnsNode("api", "http/80"), aKubernetesService("api", "10.0.0.1", 80), sliceOf("x", at8080, endpoint("10.1.0.1", "", true, true, false))),
			[]string{"10.1.0.1:8080"},
			[]string{"warning NotCaptured VirtualNode/a spec.listeners[0].portMapping.port"},
		},
		"a full name of a Service that does not exist has no endpoints": {
			newModel(aMesh(), dnsNode("api.prod.svc.cluster.local", "http/80")),
			nil,
			[]string{"error RefNotFound VirtualNode/a spec.serviceDiscovery.dns.hostname"},
		},
		"a node that does not exist has no endpoints":     {newModel(aMesh()), nil, nil},
		"a listener that does not exist has no endpoints": {dual.with(dnsNode("api", "http/81")), nil, nil},
		"another protocol's listener has no endpoints":    {dual.with(dnsNode("api", "tcp/80")), nil, nil},
		"a name outside the cluster has no endpoints":     {dual.with(dnsNode("example.com", "http/80")), nil, nil},
		"without a preference IPv4 is taken":              {dual.with(both), []string{"10.1.0.1:8080"}, nil},
		"IPv6_ONLY takes IPv6":                            {dual.with(preferring(mesh.IPv6Only)), []string{"[fd00::1]:8080"}, nil},
		"IPv6_PREFERRED takes IPv6":                       {dual.with(preferring(mesh.IPv6Preferred)), []string{"[fd00::1]:8080"}, nil},
		"IPv4_ONLY takes IPv4":                            {dual.with(preferring(mesh.IPv4Only)), []string{"10.1.0.1:8080"}, nil},
		"the mesh's preference holds":                     {dual.with(both, meshPreferring), []string{"[fd00::1]:8080"}, nil},
		"the node's preference wins over the mesh's":      {dual.with(preferring(mesh.IPv4Preferred), meshPreferring), []string{"10.1.0.1:8080"}, nil},
		"IPv6_PREFERRED takes IPv4 where there is no other": {
			dual.with(preferring(mesh.IPv6Preferred)).without(mesh.EndpointSliceKey("prod", "api", "v6")), []string{"10.1.0.1:8080"}, nil,
		},
		"IPv6_ONLY takes nothing where there is IPv4 alone": {
			dual.with(preferring(mesh.IPv6Only)).without(mesh.EndpointSliceKey("prod", "api", "v6")),
			nil,
			[]string{"warning NoTraffic VirtualNode/a spec.serviceDiscovery.dns"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			key := mesh.EndpointSetKey{Mesh: "m", Node: "a", Port: 80, Protocol: mesh.ProtocolHTTP}
			set, keys, findings := mesh.EndpointSetOf(c.model, key)
			if set.Key != key {
				t.Errorf("the set's key is %v", set.Key)
			}
			if diff := cmp.Diff(c.want, endpoints(set), equateEmpty); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
			if !slices.Contains(keys, mesh.NodeKey("m", "a")) {
				t.Errorf("the node is not among the keys: %v", keys)
			}
			wantFindings(t, findings, c.findings...)
		})
	}
}

func TestEndpointsOfANodesOwnPods(t *testing.T) {
	t.Parallel()
	pod := func(name string, ready, terminating bool, attributes map[string]string, addresses ...string) *mesh.Workload {
		w := &mesh.Workload{MeshName: "m", NodeName: "a", Namespace: "prod", Name: name, Ready: ready, Terminating: terminating, Zone: "z", Attributes: attributes}
		for _, a := range addresses {
			w.Addresses = append(w.Addresses, netip.MustParseAddr(a))
		}
		return w
	}
	selecting := func(sd *mesh.ServiceDiscovery) *mesh.VirtualNode {
		n := aNode("a", "http/80")
		n.SelectsPods, n.Spec.ServiceDiscovery = true, sd
		return n
	}
	cloudMap := func(p mesh.IPPreference, attributes ...mesh.CloudMapAttribute) *mesh.VirtualNode {
		return selecting(&mesh.ServiceDiscovery{AWSCloudMap: &mesh.AWSCloudMapServiceDiscovery{NamespaceName: "ns", ServiceName: "svc", IPPreference: p, Attributes: attributes}})
	}
	v1 := map[string]string{"version": "v1"}
	m := newModel(
		aMesh(), aClient("c", "s"), aService("s", byNode("a")),
		pod("ready", true, false, v1, "10.1.0.1", "fd00::1"), pod("six", true, false, nil, "fd00::2"), pod("ending", true, true, v1, "10.1.0.3"), pod("ended", false, true, v1, "10.1.0.4"),
		pod("starting", false, false, v1, "10.1.0.5"), pod("homeless", true, false, v1),
	)
	for name, c := range map[string]struct {
		node     *mesh.VirtualNode
		hostname string
		want     []string
		findings []string
	}{
		"a node without discovery has its ready pods": {
			selecting(nil), "a", []string{"z 10.1.0.1:80", "z 10.1.0.3:80 draining", "z 10.1.0.4:80 draining", "z [fd00::2]:80"}, nil,
		},
		"awsCloudMap has the node's pods": {
			cloudMap(""), "svc.ns", []string{"z 10.1.0.1:80", "z 10.1.0.3:80 draining", "z 10.1.0.4:80 draining", "z [fd00::2]:80"}, nil,
		},
		"a pod must carry all attributes": {
			cloudMap("", mesh.CloudMapAttribute{Key: "version", Value: "v1"}), "svc.ns", []string{"z 10.1.0.1:80", "z 10.1.0.3:80 draining", "z 10.1.0.4:80 draining"}, nil,
		},
		"a pod with another value is no endpoint": {cloudMap("", mesh.CloudMapAttribute{Key: "version", Value: ""}), "svc.ns", nil, nil},
		"IPv6_ONLY leaves pods without such an address out": {
			cloudMap(mesh.IPv6Only), "svc.ns", []string{"z [fd00::1]:80", "z [fd00::2]:80"}, nil,
		},
		"IPv4_ONLY leaves pods without such an address out": {
			cloudMap(mesh.IPv4Only), "svc.ns", []string{"z 10.1.0.1:80", "z 10.1.0.3:80 draining", "z 10.1.0.4:80 draining"}, nil,
		},
		"IPv6_PREFERRED takes the other family where a pod has no other": {
			cloudMap(mesh.IPv6Preferred), "svc.ns", []string{"z 10.1.0.3:80 draining", "z 10.1.0.4:80 draining", "z [fd00::1]:80", "z [fd00::2]:80"}, nil,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v, findings := m.with(c.node).view(t, "c")
			if d := v.Nodes[0].Discovery; d.Type != mesh.DiscoveryEndpoints || d.Hostname != c.hostname {
				t.Errorf("discovery is %+v, want endpoints and host %s", d, c.hostname)
			}
			set, _, more := mesh.EndpointSetOf(m.with(c.node), v.EndpointSets()[0])
			if diff := cmp.Diff(c.want, endpoints(set), equateEmpty); diff != "" {
				t.Errorf("endpoints (-want +got):\n%s", diff)
			}
			wantFindings(t, append(findings, more...), c.findings...)
		})
	}
}

func TestANodeThatSelectsNoPodsAndHasNoDNSIsAFinding(t *testing.T) {
	t.Parallel()
	m := newModel(aMesh(), aClient("c", "s"), aService("s", byNode("a")))
	n := aNode("a", "http/80")
	n.Spec.ServiceDiscovery = nil
	_, findings := m.with(n).view(t, "c")
	wantFindings(t, findings, "error Invalid VirtualNode/a spec.serviceDiscovery")
	n = aNode("a", "http/80")
	n.Spec.ServiceDiscovery = &mesh.ServiceDiscovery{AWSCloudMap: &mesh.AWSCloudMapServiceDiscovery{NamespaceName: "ns", ServiceName: "svc"}}
	_, findings = m.with(n).view(t, "c")
	wantFindings(t, findings, "warning NoTraffic VirtualNode/a spec.serviceDiscovery.awsCloudMap")
}
