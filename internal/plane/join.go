// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package plane

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/xds"
)

var _ xds.Director = (*Plane)(nil)

// Join names the group of a proxy and sees to it that its configuration has been delivered. Its errors are gRPC statuses with the codes that App Mesh used:
// 3 (InvalidArgument) for a node that does not exist or cannot be served.
func (p *Plane) Join(_ context.Context, proxy xds.Proxy) (string, error) {
	key, err := mesh.ParseProxyID(proxy.NodeID)
	if err != nil {
		return "", status.Error(codes.InvalidArgument, err.Error())
	}
	profile := profileOf(proxy)
	p.mu.Lock()
	defer p.mu.Unlock()
	// What changed since the last step is in its next one too, but a proxy must not hear of a node that was just made that it does not exist.
	p.now = p.opts.Store.Snapshot()
	name := groupName(key, profile)
	g := p.groups[name]
	if g == nil {
		g = &group{name: name, proxy: key, profile: profile, translator: envoy.Incremental{Parts: p.parts}}
		p.groups[name] = g
	}
	if g.view == nil {
		b := p.begin()
		b.group(g)
		if g.view == nil {
			p.forget(g)
			return "", status.Error(codes.InvalidArgument, absent(key, g.findings))
		}
		p.out.Apply(b.end())
	}
	g.members++
	return name, nil
}

// Leave ends what Join began. The last proxy of a group takes its configuration with it.
func (p *Plane) Leave(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	g := p.groups[name]
	if g == nil {
		return
	}
	g.members--
	if g.members > 0 {
		return
	}
	b := p.begin()
	b.drop(g)
	p.forget(g)
	p.out.Apply(b.end())
}

func absent(key mesh.Key, findings []mesh.Finding) string {
	for _, f := range findings {
		if f.Severity == mesh.SeverityError {
			return key.String() + " cannot be served: " + f.Message
		}
	}
	return key.String() + " does not exist; create it, or correct APPMESH_RESOURCE_ARN of the proxy"
}

// The proxy's agent says in its node metadata what configuration it can take.
const (
	// metadataIPv6 is a boolean under "tulle" that says that the proxy's host has IPv6.
	metadataTulle = "tulle"
	metadataIPv6  = "ipv6"
	// metadataMetrics is what AWS's agent sends when APPMESH_METRIC_EXTENSION_VERSION is set.
	metadataMetrics = "aws.appmesh.metric_filter"
)

// profileOf reads the few capabilities that change a proxy's configuration.
func profileOf(proxy xds.Proxy) mesh.Profile {
	fields := proxy.Metadata.GetFields()
	ours := fields[metadataTulle].GetStructValue()
	_, metrics := fields[metadataMetrics].GetKind().(*structpb.Value_StructValue)
	return mesh.Profile{
		IPv6:             ours.GetFields()[metadataIPv6].GetBoolValue(),
		MetricsExtension: metrics,
		StockImage:       ours == nil,
	}
}
