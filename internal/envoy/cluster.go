// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"fmt"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// connectTimeout is App Mesh's limit for a connection to another node.
const connectTimeout = time.Second

// egressID names a listener of a node under one client policy: that of service, or the proxy's own where service is empty.
type egressID struct {
	node    string
	port    int32
	service string
}

// egress is a listener of a node that some route leads to.
type egress struct {
	name     string
	node     *mesh.NodeView
	listener *mesh.NodeListenerView
	// userRetries is set where a route with a retry policy of the user's leads here. Envoy lets a cluster's policy win over a route's, so the cluster then has none.
	userRetries bool
	// ready is set once the cluster stands, and same where it is the one of the View before.
	ready, same bool
}

// egressClusters makes the clusters of all targets, those of weight 0 too, so that a later weight needs no new cluster.
func (b *builder) egressClusters() {
	for i := range b.view.Services {
		s := &b.view.Services[i]
		for j := range s.Ports {
			for k := range s.Ports[j].Routes {
				b.gather(s, &s.Ports[j].Routes[k])
			}
		}
	}
	names := make(map[string]egressID, len(b.egress))
	for _, id := range b.targets {
		e := b.egress[id]
		if e.node == nil {
			continue
		}
		if other, taken := names[e.name]; taken {
			b.reject(mesh.NodeKey(b.mesh, id.node), e.name, fmt.Errorf("node %q has a listener under this name already", other.node))
			continue
		}
		names[e.name] = id
		if e.same = b.takeCluster(id, e); e.same {
			e.ready = true
			continue
		}
		e.ready = b.egressCluster(id, e)
	}
}

// gather notes the listeners that a route leads to.
func (b *builder) gather(s *mesh.ServiceView, r *mesh.RouteView) {
	for _, t := range r.Targets {
		id := b.targetID(s, t)
		e := b.egress[id]
		if e == nil {
			e = b.newEgress(id)
			b.egress[id] = e
			b.targets = append(b.targets, id)
			if e.node == nil {
				b.report(mesh.ReasonRefNotFound, r.Route, mesh.Finding{
					Value:   t.Node,
					Message: fmt.Sprintf("no virtual node %q with a listener on port %d, so the target gets no requests", clip(t.Node), t.Port),
					Mend:    "create the node, or name one of its listeners",
				})
			}
		}
		if r.Retry != nil && !r.TCP {
			e.userRetries = true
		}
	}
}

func (b *builder) targetID(s *mesh.ServiceView, t mesh.TargetView) egressID {
	id := egressID{node: t.Node, port: t.Port}
	if s.OwnPolicy {
		id.service = s.Name
	}
	return id
}

func (b *builder) newEgress(id egressID) *egress {
	node := b.nodes[id.node]
	if node == nil {
		return &egress{}
	}
	for i := range node.Listeners {
		if l := &node.Listeners[i]; l.Port == id.port {
			return &egress{node: node, listener: l, name: egressName(b.setKey(node, l), id.service)}
		}
	}
	return &egress{}
}

func (b *builder) setKey(n *mesh.NodeView, l *mesh.NodeListenerView) mesh.EndpointSetKey {
	return mesh.EndpointSetKey{Mesh: b.mesh, Node: n.Name, Port: l.Port, Protocol: l.Protocol}
}

// clusterRetries says whether a cluster carries the default retry policy for the routes that lead to it. AWS's own image is too old to know of that.
func (b *builder) clusterRetries(e *egress) bool {
	return !e.userRetries && !b.view.Profile.StockImage
}

// egressCluster makes the cluster of one listener of another node, and says whether it stands.
func (b *builder) egressCluster(id egressID, e *egress) bool {
	owner := mesh.NodeKey(b.mesh, id.node)
	cluster := &clusterv3.Cluster{
		Name:             e.name,
		ConnectTimeout:   durationpb.New(connectTimeout),
		CircuitBreakers:  constants().openBreakers,
		HealthChecks:     healthChecks(e.node, e.listener),
		OutlierDetection: outlierDetection(e.listener.OutlierDetection),
		Metadata:         nodeMetadata(id.node),

		TypedExtensionProtocolOptions: constants().httpOptions(e.listener.Protocol, b.clusterRetries(e)),
	}
	r := Resource{Name: e.name, Message: cluster, Origins: []mesh.Key{owner}, Warms: len(cluster.GetHealthChecks()) > 0}
	if id.service != "" {
		r.Origins = append(r.Origins, mesh.VirtualServiceKey(b.mesh, id.service))
	}
	cluster.IgnoreHealthOnHostRemoval = r.Warms
	switch {
	case e.node.Discovery.Type != mesh.DiscoveryEndpoints:
		b.asksDNS(cluster, &e.node.Discovery, e.listener.Port)
	case b.inline != nil:
		b.standsAlone(cluster, e)
	default:
		r.Endpoints = EndpointsName(b.setKey(e.node, e.listener))
		cluster.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_EDS}
		cluster.EdsClusterConfig = &clusterv3.Cluster_EdsClusterConfig{EdsConfig: adsSource(), ServiceName: r.Endpoints}
	}
	return b.add(b.clusters, r, owner)
}

// asksDNS makes a cluster find its endpoints by its node's hostname.
func (b *builder) asksDNS(c *clusterv3.Cluster, d *mesh.DiscoveryView, port int32) {
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_LOGICAL_DNS}
	if d.Type != mesh.DiscoveryLogicalDNS {
		c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STRICT_DNS}
	}
	c.DnsLookupFamily = b.lookupFamily(d.IPPreference)
	c.RespectDnsTtl = true //nolint:staticcheck // what replaces it is a cluster extension that the Envoy in AWS's own image does not have
	c.LoadAssignment = oneEndpoint(c.GetName(), d.Hostname, port)
}

// lookupFamily says which addresses of a name are asked for. Without a preference App Mesh asked for IPv6 first, which a proxy on a host without IPv6 cannot use.
func (b *builder) lookupFamily(p mesh.IPPreference) clusterv3.Cluster_DnsLookupFamily {
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
		if b.view.Profile.IPv6 || b.view.Profile.StockImage {
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
