// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// passInput is what a cluster is made from that connects to wherever the client meant to go.
type passInput struct {
	mesh string
	// all says that it is the one for anything, and not for AWS's own services alone.
	all bool
}

// passClusters makes the clusters that connect to wherever the client meant to go: AWS's own services, and under ALLOW_ALL anything.
func (b *builder) passClusters() {
	b.clusters = append(b.clusters, b.passCluster(false))
	if b.allowsAll() {
		b.clusters = append(b.clusters, b.passCluster(true))
	}
}

func (b *builder) allowsAll() bool { return b.view.Egress == mesh.EgressAllowAll }

func (b *builder) passCluster(all bool) *Resource {
	in := passInput{mesh: b.mesh, all: all}
	return b.parts.passes.get(in, func(*Resource) bool { return true }, in.make)
}

func (in passInput) make() *Resource {
	m := &clusterv3.Cluster{
		Name:                 awsName(in.mesh),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST},
		LbPolicy:             clusterv3.Cluster_CLUSTER_PROVIDED,
		ConnectTimeout:       durationpb.New(connectTimeout),
		CircuitBreakers:      constants().openBreakers,
	}
	if in.all {
		m.Name, m.TypedExtensionProtocolOptions = passName(in.mesh), constants().httpSame
	}
	return &Resource{Name: m.GetName(), Message: m, Origins: []mesh.Key{mesh.MeshKey(in.mesh)}, shared: true} // none of Envoy's own rules can refuse it
}
