// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
)

const (
	clusterType  = "type.googleapis.com/envoy.config.cluster.v3.Cluster"
	listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"
)

// plane is the smallest control plane: it tells each stream its clusters and listeners once.
type plane struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer

	resources map[string][]*discoveryv3.Resource

	mu sync.Mutex
	// seen are the nodes that opened a stream.
	seen []*corev3.Node
}

func (p *plane) DeltaAggregatedResources(s discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	for {
		request, err := s.Recv()
		if err != nil {
			return err
		}
		if node := request.GetNode(); node != nil {
			p.mu.Lock()
			p.seen = append(p.seen, node)
			p.mu.Unlock()
		}
		if request.GetResponseNonce() != "" {
			continue
		}
		if err := s.Send(&discoveryv3.DeltaDiscoveryResponse{TypeUrl: request.GetTypeUrl(), Nonce: "1", Resources: p.resources[request.GetTypeUrl()]}); err != nil {
			return err
		}
	}
}

func (p *plane) nodes() []*corev3.Node {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen
}

// servePlane runs a control plane on a socket until the test ends or the returned function is called.
func servePlane(t *testing.T, socket string, p *plane) (stop func()) {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer()
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(server, p)
	go func() { _ = server.Serve(listener) }() // it ends when it is stopped
	stop = sync.OnceFunc(server.Stop)
	t.Cleanup(stop)
	return stop
}

// inbound is configuration for a proxy with one listener of HTTP and one of TCP before the same application.
func inbound(t *testing.T, httpPort, tcpPort, appPort, echoPort uint32) map[string][]*discoveryv3.Resource {
	t.Helper()
	router := &hcmv3.HttpFilter{Name: "router", ConfigType: &hcmv3.HttpFilter_TypedConfig{TypedConfig: pack(t, &routerv3.Router{})}}
	http := &hcmv3.HttpConnectionManager{
		StatPrefix:  "ingress",
		HttpFilters: []*hcmv3.HttpFilter{router},
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name: "in",
			VirtualHosts: []*routev3.VirtualHost{{Name: "in", Domains: []string{"*"}, Routes: []*routev3.Route{{
				Match:  &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
				Action: &routev3.Route_Route{Route: &routev3.RouteAction{ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "app"}}},
			}}}},
		}},
	}
	tcp := &tcpproxyv3.TcpProxy{StatPrefix: "ingress", ClusterSpecifier: &tcpproxyv3.TcpProxy_Cluster{Cluster: "echo"}}
	return map[string][]*discoveryv3.Resource{
		clusterType: {
			resource(t, "app", cluster("app", appPort)),
			resource(t, "echo", cluster("echo", echoPort)),
		},
		listenerType: {
			resource(t, "http", listener("http", httpPort, pack(t, http))),
			resource(t, "tcp", listener("tcp", tcpPort, pack(t, tcp))),
		},
	}
}

func cluster(name string, port uint32) *clusterv3.Cluster {
	return &clusterv3.Cluster{
		Name:                 name,
		ConnectTimeout:       durationpb.New(time.Second),
		ClusterDiscoveryType: &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		LoadAssignment: &endpointv3.ClusterLoadAssignment{ClusterName: name, Endpoints: []*endpointv3.LocalityLbEndpoints{{
			LbEndpoints: []*endpointv3.LbEndpoint{{HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: loopback(port)}}}},
		}}},
	}
}

func listener(name string, port uint32, filter *anypb.Any) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name: name, Address: loopback(port), TrafficDirection: corev3.TrafficDirection_INBOUND,
		FilterChains: []*listenerv3.FilterChain{{
			Filters: []*listenerv3.Filter{{Name: "f", ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: filter}}},
		}},
	}
}

func loopback(port uint32) *corev3.Address {
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address: "127.0.0.1", PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: port},
	}}}
}

func resource(t *testing.T, name string, m proto.Message) *discoveryv3.Resource {
	t.Helper()
	return &discoveryv3.Resource{Name: name, Version: "1", Resource: pack(t, m)}
}

func pack(t *testing.T, m proto.Message) *anypb.Any {
	t.Helper()
	packed, err := anypb.New(m)
	if err != nil {
		t.Fatal(err)
	}
	return packed
}

// freePort returns a port of 127.0.0.1 that nobody listens on now.
func freePort(t *testing.T) uint32 {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("%v is no TCP address", l.Addr())
	}
	return uint32(address.Port)
}
