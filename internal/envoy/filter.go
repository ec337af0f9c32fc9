// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// The prefixes of statistics.
const (
	ingressStats = "ingress"
	egressStats  = "egress"
)

// ingressFilter is the filter of one of the proxy's own listeners, and the clusters that it names.
func (b *builder) ingressFilter(l *mesh.Listener) (*listenerv3.Filter, []string) {
	prefix := ingressStats
	if len(b.view.Listeners) > 1 {
		prefix += "." + string(l.PortMapping.Protocol) + "." + portText(l.PortMapping.Port)
	}
	if l.PortMapping.Protocol != mesh.ProtocolTCP {
		return b.httpFilter(prefix, ingressRoutesName(l.PortMapping.Port)), nil
	}
	cluster := ingressName(b.mesh, b.view.Proxy.Name, l.PortMapping)
	proxy := &tcpproxyv3.TcpProxy{StatPrefix: prefix, AccessLog: b.log, ClusterSpecifier: &tcpproxyv3.TcpProxy_Cluster{Cluster: cluster}}
	if l.Timeout != nil && l.Timeout.TCP != nil && l.Timeout.TCP.Idle != nil {
		proxy.IdleTimeout = span(l.Timeout.TCP.Idle.Span())
	}
	return b.tcpFilter(proxy, b.view.Proxy), []string{cluster}
}

// egressHTTPFilter is the filter of all HTTP services on a port.
func (b *builder) egressHTTPFilter(port int32) *listenerv3.Filter {
	return b.httpFilter(egressStats, egressRoutesName(port))
}

// egressTCPFilter is the filter of a TCP service, by its first route, and the clusters that it names. A service that nothing answers for closes connections.
func (b *builder) egressTCPFilter(c claim) (*listenerv3.Filter, []string) {
	if len(c.port.Routes) == 0 {
		return constants().closeFilter, nil
	}
	r := &c.port.Routes[0]
	shares := sharesOf(r.Targets, c.to)
	if len(shares) == 0 {
		return constants().closeFilter, nil
	}
	proxy := &tcpproxyv3.TcpProxy{StatPrefix: egressStats, AccessLog: b.log}
	if r.TCPIdle != nil {
		proxy.IdleTimeout = span(r.TCPIdle.Span())
	}
	needs := make([]string, 0, len(shares))
	weighted := &tcpproxyv3.TcpProxy_WeightedCluster{}
	for _, share := range shares {
		needs = append(needs, share.to.name)
		weighted.Clusters = append(weighted.Clusters, &tcpproxyv3.TcpProxy_WeightedCluster_ClusterWeight{Name: share.to.name, Weight: share.weight})
	}
	if len(shares) == 1 {
		proxy.ClusterSpecifier = &tcpproxyv3.TcpProxy_Cluster{Cluster: shares[0].to.name}
	} else {
		proxy.ClusterSpecifier = &tcpproxyv3.TcpProxy_WeightedClusters{WeightedClusters: weighted}
	}
	return b.tcpFilter(proxy, r.Route), needs
}

// passFilter connects to wherever the client meant to go.
func (b *builder) passFilter(cluster string) *listenerv3.Filter {
	return b.tcpFilter(&tcpproxyv3.TcpProxy{
		StatPrefix: egressStats, AccessLog: b.log, ClusterSpecifier: &tcpproxyv3.TcpProxy_Cluster{Cluster: cluster},
	}, mesh.MeshKey(b.mesh))
}

// tcpFilter wraps a TCP proxy; one that Envoy would refuse becomes a filter that closes connections.
func (b *builder) tcpFilter(m *tcpproxyv3.TcpProxy, owner mesh.Key) *listenerv3.Filter {
	packed, err := pack(m)
	if err != nil {
		b.reject(owner, "the TCP proxy", err)
		return constants().closeFilter
	}
	return &listenerv3.Filter{Name: "envoy.filters.network.tcp_proxy", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed}}
}

// httpFilter is an HTTP connection manager with the given statistics and route configuration. It takes HTTP/1.1 and HTTP/2, and lets WebSockets through.
// It trusts what the client's headers say of where a request came from, as App Mesh did, and passes on no client certificate.
func (b *builder) httpFilter(stats, routes string) *listenerv3.Filter {
	manager := &hcmv3.HttpConnectionManager{
		StatPrefix:           stats,
		RouteSpecifier:       &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{ConfigSource: adsSource(), RouteConfigName: routes}},
		HttpFilters:          []*hcmv3.HttpFilter{constants().routerFilter},
		AccessLog:            b.log,
		Tracing:              &hcmv3.HttpConnectionManager_Tracing{},
		UpgradeConfigs:       []*hcmv3.HttpConnectionManager_UpgradeConfig{{UpgradeType: "websocket"}},
		Http2ProtocolOptions: &corev3.Http2ProtocolOptions{AllowConnect: true},

		NormalizePath:                &wrapperspb.BoolValue{Value: true},
		MergeSlashes:                 true,
		PathWithEscapedSlashesAction: hcmv3.HttpConnectionManager_KEEP_UNCHANGED,
	}
	if b.inline != nil {
		for _, r := range b.routes {
			if config, ok := r.Message.(*routev3.RouteConfiguration); ok && r.Name == routes {
				manager.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: config}
			}
		}
	}
	packed, err := pack(manager)
	if err != nil {
		b.reject(b.view.Proxy, routes, err)
		return constants().closeFilter
	}
	return &listenerv3.Filter{Name: "envoy.filters.network.http_connection_manager", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: packed}}
}
