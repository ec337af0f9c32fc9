// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"net/netip"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// StaticOptions are the parts of a static bootstrap that a View does not hold. The zero value is ready to use.
type StaticOptions struct {
	// Admin is where Envoy's admin interface listens; the zero value is 127.0.0.1:9901.
	Admin netip.AddrPort
}

// Static makes one whole bootstrap with everything inline, which Envoy runs with no control plane: routes stand in their listeners, endpoint sets in their clusters.
// A cluster whose set is missing or empty asks DNS for the node's hostname instead, where it has one.
func Static(v *mesh.View, sets []*mesh.EndpointSet, opts StaticOptions) (*bootstrapv3.Bootstrap, []mesh.Finding) {
	b := newBuilder(v, new(Parts))
	b.inline = make(map[mesh.EndpointSetKey]*mesh.EndpointSet, len(sets))
	for _, s := range sets {
		b.inline[s.Key] = s
	}
	resources, findings := b.build()

	admin := opts.Admin
	if !admin.IsValid() {
		admin = netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), adminPort)
	}
	id := "mesh/" + v.Proxy.Mesh + "/virtualNode/" + v.Proxy.Name
	out := &bootstrapv3.Bootstrap{
		Node:            &corev3.Node{Id: clip(id), Cluster: clip(id)},
		Admin:           &bootstrapv3.Admin{Address: socket(admin.Addr().String(), int32(admin.Port()))},
		StaticResources: &bootstrapv3.Bootstrap_StaticResources{},
	}
	for _, r := range resources.Clusters {
		if cluster, ok := r.Message.(*clusterv3.Cluster); ok {
			out.StaticResources.Clusters = append(out.StaticResources.Clusters, cluster)
		}
	}
	for _, r := range resources.Listeners {
		if listener, ok := r.Message.(*listenerv3.Listener); ok {
			out.StaticResources.Listeners = append(out.StaticResources.Listeners, listener)
		}
	}
	return out, findings
}

// standsAlone gives a cluster, in place of endpoints from the control plane, those of the set that Static was given; nil for none.
func (in *clusterInput) standsAlone(c *clusterv3.Cluster, set *mesh.EndpointSet) {
	empty := set == nil || len(set.Endpoints) == 0
	if empty && in.discovery.Hostname != "" {
		asksDNS(c, &mesh.DiscoveryView{Type: mesh.DiscoveryStrictDNS, Hostname: in.discovery.Hostname, IPPreference: in.discovery.IPPreference}, in.port, in.ipv6)
		return
	}
	c.ClusterDiscoveryType = &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC}
	c.LoadAssignment = &endpointv3.ClusterLoadAssignment{ClusterName: c.GetName()}
	if !empty {
		c.LoadAssignment.Endpoints = localities(set.Endpoints)
	}
}
