// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// appConnectTimeout is App Mesh's limit for a connection to the workload beside the proxy.
const appConnectTimeout = 250 * time.Millisecond

// The ports that belong to the proxy itself. A workload's listener there would lead requests back into the proxy, or to its admin interface.
const (
	inboundPort  = 15000
	outboundPort = 15001
	adminPort    = 9901
)

// ingressClusters makes the clusters of the workload beside the proxy, and returns the listeners that have one, sorted by port.
func (b *builder) ingressClusters() []*mesh.Listener {
	var out []*mesh.Listener
	seen := make(map[int32]bool, len(b.view.Listeners))
	for i := range b.view.Listeners {
		l := &b.view.Listeners[i]
		port := l.PortMapping.Port
		if why := b.refuseListener(l, seen[port]); why != "" {
			b.report(mesh.ReasonPortConflict, b.view.Proxy, mesh.Finding{
				Field: "spec.listeners", Value: portText(port), Message: why, Mend: "choose another port",
			})
			continue
		}
		seen[port] = true
		if b.ingressCluster(l) {
			out = append(out, l)
		}
	}
	slices.SortFunc(out, func(x, y *mesh.Listener) int { return cmp.Compare(x.PortMapping.Port, y.PortMapping.Port) })
	return out
}

// refuseListener says why a listener cannot be served; empty where it can.
func (b *builder) refuseListener(l *mesh.Listener, taken bool) string {
	port := l.PortMapping.Port
	switch {
	case taken:
		return fmt.Sprintf("port %d has two listeners; the first one keeps it", port)
	case port == inboundPort || port == outboundPort || port == adminPort:
		return fmt.Sprintf("port %d belongs to the proxy itself, so the listener is left out", port)
	case port < 1 || port > 65535:
		return fmt.Sprintf("%d is no port, so the listener is left out", port)
	default:
		return ""
	}
}

func (b *builder) ingressCluster(l *mesh.Listener) bool {
	name := ingressName(b.mesh, b.view.Proxy.Name, l.PortMapping)
	host := "127.0.0.1"
	if p := b.view.IPPreference; p == mesh.IPv6Only || p == mesh.IPv6Preferred {
		host = "::1"
	}
	m := &clusterv3.Cluster{
		Name:                 name,
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		ConnectTimeout:       durationpb.New(appConnectTimeout),
		CircuitBreakers:      poolBreakers(l.ConnectionPool),
		LoadAssignment:       oneEndpoint(name, host, l.PortMapping.Port),

		TypedExtensionProtocolOptions: constants().httpOptions(l.PortMapping.Protocol, false),
	}
	return b.add(&b.clusters, &Resource{Name: name, Message: m, Origins: []mesh.Key{b.view.Proxy}}, b.view.Proxy)
}

// poolBreakers turns a listener's connection pool into limits towards its workload; what it does not say stays open.
func poolBreakers(p *mesh.ConnectionPool) *clusterv3.CircuitBreakers {
	switch {
	case p == nil:
		return constants().openBreakers
	case p.HTTP != nil:
		pending := uint32(unlimited)
		if p.HTTP.MaxPendingRequests != nil {
			pending = limit(*p.HTTP.MaxPendingRequests)
		}
		return breakers(limit(p.HTTP.MaxConnections), pending, unlimited)
	case p.HTTP2 != nil:
		return breakers(unlimited, unlimited, limit(p.HTTP2.MaxRequests))
	case p.GRPC != nil:
		return breakers(unlimited, unlimited, limit(p.GRPC.MaxRequests))
	case p.TCP != nil:
		return breakers(limit(p.TCP.MaxConnections), unlimited, unlimited)
	default:
		return constants().openBreakers
	}
}

// limit is a limit of the API, which is 1 or more.
func limit(n int32) uint32 { return unsigned(max(n, 1)) }
