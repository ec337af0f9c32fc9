// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// connectTimeout is App Mesh's limit for a connection to another node.
const connectTimeout = time.Second

// cluster is a cluster that proxies call, as far as it depends on its input alone.
type cluster struct {
	name string
	// retries says that it carries the default retry policy for the routes that lead to it.
	retries bool
	// resource is nil where Envoy would refuse it; findings say why.
	resource *Resource
	findings []mesh.Finding
}

// clusterInput is all that a cluster is made from. What it points to is part of the model, which never changes.
type clusterInput struct {
	mesh string
	egressID
	discovery mesh.DiscoveryView
	protocol  mesh.Protocol
	outlier   *mesh.OutlierDetection
	checked   bool
	check     mesh.HealthCheckPolicy
	retries   bool
	// ipv6 says that a name without a preference is asked for addresses of both families.
	ipv6 bool
}

// cluster finds or makes the cluster of a target. AWS's own image is too old to know of retries that a cluster asks for.
func (b *builder) cluster(e *egress) *cluster {
	in := clusterInput{
		mesh: b.mesh, egressID: e.id, discovery: e.node.Discovery, protocol: e.listener.Protocol, outlier: e.listener.OutlierDetection,
		retries: !e.userRetries && !b.view.Profile.StockImage, ipv6: b.view.Profile.IPv6 || b.view.Profile.StockImage,
	}
	if e.listener.HealthCheck != nil {
		in.checked, in.check = true, *e.listener.HealthCheck
	}
	if b.inline != nil {
		return in.make(b.inline)
	}
	return b.parts.clusters.get(in, func(*cluster) bool { return true }, func() *cluster { return in.make(nil) })
}

func (in *clusterInput) setKey() mesh.EndpointSetKey {
	return mesh.EndpointSetKey{Mesh: in.mesh, Node: in.node, Port: in.port, Protocol: in.protocol}
}

// make makes the cluster, with its endpoints where inline holds endpoint sets.
func (in *clusterInput) make(inline map[mesh.EndpointSetKey]*mesh.EndpointSet) *cluster {
	owner := mesh.NodeKey(in.mesh, in.node)
	m := &clusterv3.Cluster{
		Name:             egressName(in.setKey(), in.service),
		ConnectTimeout:   durationpb.New(connectTimeout),
		CircuitBreakers:  constants().openBreakers,
		OutlierDetection: outlierDetection(in.outlier),
		Metadata:         nodeMetadata(in.node),

		TypedExtensionProtocolOptions: constants().httpOptions(in.protocol, in.retries),
	}
	if in.checked {
		m.HealthChecks = healthChecks(&in.check, in.discovery.Hostname, in.port)
	}
	r := &Resource{Name: m.GetName(), Message: m, Origins: []mesh.Key{owner}, Warms: in.checked, shared: true}
	if in.service != "" {
		r.Origins = append(r.Origins, mesh.VirtualServiceKey(in.mesh, in.service))
	}
	m.IgnoreHealthOnHostRemoval = r.Warms
	switch {
	case in.discovery.Type != mesh.DiscoveryEndpoints:
		asksDNS(m, &in.discovery, in.port, in.ipv6)
	case inline != nil:
		in.standsAlone(m, inline[in.setKey()])
	default:
		r.Endpoints = EndpointsName(in.setKey())
		m.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
		m.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: adsSource(), ServiceName: r.Endpoints}
	}
	out := &cluster{name: r.Name, retries: in.retries}
	var p reporter
	out.resource = p.checked(r, owner)
	out.findings = p.found
	return out
}

// asksDNS makes a cluster find its endpoints by its node's hostname.
func asksDNS(c *clusterv3.Cluster, d *mesh.DiscoveryView, port int32, ipv6 bool) {
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS}
	if d.Type != mesh.DiscoveryLogicalDNS {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
	}
	c.DnsLookupFamily = lookupFamily(d.IPPreference, ipv6)
	c.RespectDnsTtl = true //nolint:staticcheck // what replaces it is a cluster extension that the Envoy in AWS's own image does not have
	c.LoadAssignment = oneEndpoint(c.GetName(), d.Hostname, port)
}

// lookupFamily says which addresses of a name are asked for. Without a preference App Mesh asked for IPv6 first, which a proxy on a host without IPv6 cannot use.
func lookupFamily(p mesh.IPPreference, ipv6 bool) clusterv3.Cluster_DnsLookupFamily {
	switch p {
	case mesh.IPv4Only:
		return clusterv3.Cluster_V4_ONLY
	case mesh.IPv6Only:
		return clusterv3.Cluster_V6_ONLY
	case mesh.IPv4Preferred:
		return clusterv3.Cluster_V4_PREFERRED
	case mesh.IPv6Preferred:
		return clusterv3.Cluster_AUTO
	default:
		if ipv6 {
			return clusterv3.Cluster_AUTO
		}
		return clusterv3.Cluster_V4_PREFERRED
	}
}

// oneEndpoint is a load assignment of a single host.
func oneEndpoint(cluster, host string, port int32) *endpointv3.ClusterLoadAssignment {
	return &endpointv3.ClusterLoadAssignment{ClusterName: cluster, Endpoints: []*endpointv3.LocalityLbEndpoints{{
		LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: socket(host, port)}}}},
	}}}
}

// outlierDetection ejects endpoints after consecutive server errors, and for nothing else, since nothing else is asked for. Other than the share says, one endpoint may always go.
func outlierDetection(o *mesh.OutlierDetection) *clusterv3.OutlierDetection {
	if o == nil {
		return nil
	}
	return &clusterv3.OutlierDetection{
		Consecutive_5Xx:      count(uint32(min(max(o.MaxServerErrors, 1), unlimited))),
		Interval:             spanOrDefault(o.Interval),
		BaseEjectionTime:     spanOrDefault(o.BaseEjectionDuration),
		MaxEjectionPercent:   count(unsigned(o.MaxEjectionPercent)),
		EnforcingSuccessRate: count(0),
		AlwaysEjectOneHost:   &wrapperspb.BoolValue{Value: true},
	}
}
