// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"fmt"
	"slices"
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
	id egressID
	// node and listener are nil where there is no such node, or no such listener of it.
	node     *mesh.NodeView
	listener *mesh.NodeListenerView
	// userRetries is set where a route with a retry policy of the user's leads here. Envoy lets a cluster's policy win over a route's, so the cluster then has none.
	userRetries bool
	// part is the cluster, and ready is set once it stands.
	part  *cluster
	ready bool
}

// leadsTo is the name of the cluster where it stands, and otherwise empty.
func (e *egress) leadsTo() string {
	if !e.ready {
		return ""
	}
	return e.part.name
}

// gather notes the services' claims and the listeners that their routes lead to.
func (b *builder) gather() {
	claims, targets := 0, 0
	for i := range b.view.Services {
		for j := range b.view.Services[i].Ports {
			claims++
			for k := range b.view.Services[i].Ports[j].Routes {
				targets += len(b.view.Services[i].Ports[j].Routes[k].Targets)
			}
		}
	}
	b.claims = make([]claim, 0, claims)
	b.targets = make([]egress, 0, targets) // never grows, for it is pointed into
	if targets > few {
		b.byID = make(map[egressID]*egress, targets)
	}
	to := make([]*egress, 0, targets)
	for i := range b.view.Services {
		s := &b.view.Services[i]
		for j := range s.Ports {
			first := len(to)
			for k := range s.Ports[j].Routes {
				to = b.gatherRoute(to, s, &s.Ports[j].Routes[k])
			}
			b.claims = append(b.claims, claim{service: s, port: &s.Ports[j], to: to[first:]})
		}
	}
}

// gatherRoute appends the listeners that a route leads to.
func (b *builder) gatherRoute(to []*egress, s *mesh.ServiceView, r *mesh.RouteView) []*egress {
	for _, t := range r.Targets {
		id := egressID{node: t.Node, port: t.Port}
		if s.OwnPolicy {
			id.service = s.Name
		}
		e := b.known(id)
		if e == nil {
			e = b.newEgress(id)
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
		to = append(to, e)
	}
	return to
}

// few is how many targets are looked through faster than they are put into a map.
const few = 32

// known finds a target that was gathered already.
func (b *builder) known(id egressID) *egress {
	if b.byID != nil {
		return b.byID[id]
	}
	for i := range b.targets {
		if b.targets[i].id == id {
			return &b.targets[i]
		}
	}
	return nil
}

func (b *builder) newEgress(id egressID) *egress {
	b.targets = append(b.targets, egress{id: id})
	e := &b.targets[len(b.targets)-1]
	if b.byID != nil {
		b.byID[id] = e
	}
	if n, ok := slices.BinarySearchFunc(b.nodes, id.node, func(n mesh.NodeView, name string) int { return cmp.Compare(n.Name, name) }); ok {
		node := &b.nodes[n]
		for i := range node.Listeners {
			if l := &node.Listeners[i]; l.Port == id.port {
				e.node, e.listener = node, l
				break
			}
		}
	}
	return e
}

// egressClusters makes the clusters of all targets, those of weight 0 too, so that a later weight needs no new cluster.
func (b *builder) egressClusters() {
	byName := make([]*egress, 0, len(b.targets))
	for i := range b.targets {
		if e := &b.targets[i]; e.node != nil {
			e.part = b.cluster(e)
			byName = append(byName, e)
		}
	}
	// Of two listeners with one name the first in the order of the View has it.
	slices.SortStableFunc(byName, func(x, y *egress) int { return cmp.Compare(x.part.name, y.part.name) })
	var owner *egress
	for _, e := range byName {
		if owner != nil && owner.part.name == e.part.name {
			b.reject(mesh.NodeKey(b.mesh, e.id.node), e.part.name, fmt.Errorf("node %q has a listener under this name already", owner.id.node))
			continue
		}
		owner = e
		b.found = append(b.found, e.part.findings...)
		if e.ready = e.part.resource != nil; e.ready {
			b.clusters = append(b.clusters, e.part.resource)
		}
	}
}

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
