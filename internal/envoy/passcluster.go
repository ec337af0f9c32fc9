// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// passClusters makes the clusters that connect to wherever the client meant to go: AWS's own services, and under ALLOW_ALL anything.
func (b *builder) passClusters() {
	b.passCluster(awsName(b.mesh), nil)
	if b.allowsAll() {
		b.passCluster(passName(b.mesh), constants().httpSame)
	}
}

func (b *builder) allowsAll() bool { return b.view.Egress == mesh.EgressAllowAll }

func (b *builder) passCluster(name string, options map[string]*anypb.Any) {
	m := &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_ORIGINAL_DST},
		LbPolicy:             clusterv3.Cluster_CLUSTER_PROVIDED,
		ConnectTimeout:       durationpb.New(connectTimeout),
		CircuitBreakers:      constants().openBreakers,

		TypedExtensionProtocolOptions: options,
	}
	b.add(&b.clusters, &Resource{Name: name, Message: m, Origins: []mesh.Key{mesh.MeshKey(b.mesh)}}, mesh.MeshKey(b.mesh))
}
