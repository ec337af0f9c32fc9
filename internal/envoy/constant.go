// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"sync"

	xdscorev3 "github.com/cncf/xds/go/xds/core/v3"
	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	originaldstv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/original_dst/v3"
	tlsinspectorv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/listener/tls_inspector/v3"
	directv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/direct_response/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	networkv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/matching/common_inputs/network/v3"
	previoushostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	httpoptionsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// httpOptionsName is the key under which a cluster holds its HTTP options.
const httpOptionsName = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"

// parts are messages that are the same in all configurations, made once and never changed.
type parts struct {
	// openBreakers are circuit breakers that never open.
	openBreakers *clusterv3.CircuitBreakers
	// defaultRetry is the retry policy that App Mesh gave to every route without one.
	defaultRetry *routev3.RetryPolicy
	// previousHosts makes a retry go to another endpoint.
	previousHosts []*routev3.RetryPolicy_RetryHostPredicate

	http1, http1Retry, http2, http2Retry, httpSame map[string]*anypb.Any

	routerFilter *hcmv3.HttpFilter
	closeFilter  *listenerv3.Filter
	originalDst  *listenerv3.ListenerFilter
	tlsInspector *listenerv3.ListenerFilter

	portInput, addressInput, sniInput, transportInput *xdscorev3.TypedExtensionConfig
}

// constants returns the parts, which are made at the first call.
var constants = sync.OnceValue(newParts)

func newParts() *parts {
	c := &parts{openBreakers: breakers(unlimited, unlimited, unlimited)}
	c.previousHosts = []*routev3.RetryPolicy_RetryHostPredicate{{
		Name:       "envoy.retry_host_predicates.previous_hosts",
		ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{TypedConfig: fixed(&previoushostsv3.PreviousHostsPredicate{})},
	}}
	c.defaultRetry = &routev3.RetryPolicy{
		RetryOn:                       "reset,connect-failure,refused-stream,unavailable,retriable-status-codes",
		NumRetries:                    count(2),
		RetryHostPredicate:            c.previousHosts,
		HostSelectionRetryMaxAttempts: hostSelections,
		RetriableStatusCodes:          []uint32{503},
	}

	explicit1 := &httpoptionsv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpoptionsv3.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &httpoptionsv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{HttpProtocolOptions: &corev3.Http1ProtocolOptions{}},
	}}
	explicit2 := &httpoptionsv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpoptionsv3.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &httpoptionsv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{Http2ProtocolOptions: &corev3.Http2ProtocolOptions{}},
	}}
	same := &httpoptionsv3.HttpProtocolOptions_UseDownstreamProtocolConfig{UseDownstreamProtocolConfig: &httpoptionsv3.HttpProtocolOptions_UseDownstreamHttpConfig{
		Http2ProtocolOptions: &corev3.Http2ProtocolOptions{},
	}}
	c.http1 = httpOptions(&httpoptionsv3.HttpProtocolOptions{UpstreamProtocolOptions: explicit1})
	c.http1Retry = httpOptions(&httpoptionsv3.HttpProtocolOptions{UpstreamProtocolOptions: explicit1, RetryPolicy: c.defaultRetry})
	c.http2 = httpOptions(&httpoptionsv3.HttpProtocolOptions{UpstreamProtocolOptions: explicit2})
	c.http2Retry = httpOptions(&httpoptionsv3.HttpProtocolOptions{UpstreamProtocolOptions: explicit2, RetryPolicy: c.defaultRetry})
	c.httpSame = httpOptions(&httpoptionsv3.HttpProtocolOptions{UpstreamProtocolOptions: same})

	c.routerFilter = &hcmv3.HttpFilter{Name: "envoy.filters.http.router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: fixed(&routerv3.Router{})}}
	c.closeFilter = &listenerv3.Filter{Name: "envoy.filters.network.direct_response", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: fixed(&directv3.Config{})}}
	c.originalDst = &listenerv3.ListenerFilter{
		Name: "envoy.filters.listener.original_dst", ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: fixed(&originaldstv3.OriginalDst{})},
	}
	c.tlsInspector = &listenerv3.ListenerFilter{
		Name: "envoy.filters.listener.tls_inspector", ConfigType: &listenerv3.ListenerFilter_TypedConfig{TypedConfig: fixed(&tlsinspectorv3.TlsInspector{})},
		FilterDisabled: otherPortsThan(tlsPort),
	}
	c.portInput = &xdscorev3.TypedExtensionConfig{Name: "port", TypedConfig: fixed(&networkv3.DestinationPortInput{})}
	c.addressInput = &xdscorev3.TypedExtensionConfig{Name: "address", TypedConfig: fixed(&networkv3.DestinationIPInput{})}
	c.sniInput = &xdscorev3.TypedExtensionConfig{Name: "server_name", TypedConfig: fixed(&networkv3.ServerNameInput{})}
	c.transportInput = &xdscorev3.TypedExtensionConfig{Name: "transport", TypedConfig: fixed(&networkv3.TransportProtocolInput{})}
	return c
}

// fixed wraps a message that is part of the program; one that cannot be wrapped is a fault of the program, which any test finds.
func fixed(m proto.Message) *anypb.Any {
	packed, err := pack(m)
	if err != nil {
		panic(err)
	}
	return packed
}

func httpOptions(m *httpoptionsv3.HttpProtocolOptions) map[string]*anypb.Any {
	return map[string]*anypb.Any{httpOptionsName: fixed(m)}
}

// httpOptions are the options of a cluster by the protocol of its listener; a TCP cluster has none.
func (c *parts) httpOptions(p mesh.Protocol, retries bool) map[string]*anypb.Any {
	switch p {
	case mesh.ProtocolHTTP:
		if retries {
			return c.http1Retry
		}
		return c.http1
	case mesh.ProtocolHTTP2, mesh.ProtocolGRPC:
		if retries {
			return c.http2Retry
		}
		return c.http2
	default:
		return nil
	}
}

// breakers limits a cluster at default priority. Retries are never limited.
func breakers(connections, pending, requests uint32) *clusterv3.CircuitBreakers {
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections: count(connections), MaxPendingRequests: count(pending), MaxRequests: count(requests), MaxRetries: count(unlimited),
	}}}
}

// otherPortsThan matches connections whose original port is not the given one.
func otherPortsThan(port int32) *listenerv3.ListenerFilterChainMatchPredicate {
	this := &listenerv3.ListenerFilterChainMatchPredicate{Rule: &listenerv3.ListenerFilterChainMatchPredicate_DestinationPortRange{
		DestinationPortRange: portRange(port),
	}}
	return &listenerv3.ListenerFilterChainMatchPredicate{Rule: &listenerv3.ListenerFilterChainMatchPredicate_NotMatch{NotMatch: this}}
}
