// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package simulate

import (
	"fmt"
	"net/netip"
	"strings"

	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	directv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/direct_response/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	tcpproxyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/tcp_proxy/v3"
)

// The listeners that the redirect leads to.
const (
	inboundListener  = "lds_ingress_0.0.0.0_15000"
	outboundListener = "lds_egress_0.0.0.0_15001"
)

// Request is a request, or a bare connection, as the redirect brings it to a proxy.
type Request struct {
	// Address and Port are the original destination; the zero Address is one that nothing knows.
	Address netip.Addr
	Port    int32
	// ServerName is set for a connection that begins with a TLS handshake.
	ServerName string
	// Host is the request's authority; Method is GET, Scheme http and Path "/" where they are empty. Path may carry a query.
	Host, Method, Scheme, Path string
	Headers                    map[string]string
}

// Landing is where a request ends.
type Landing struct {
	// Closed says that the connection is closed without an answer.
	Closed bool
	// Status is the proxy's own answer, 0 for none.
	Status uint32
	// Shares are the clusters that the request may go to, with their weights; a single cluster has weight 1.
	Shares map[string]uint32
}

// String writes "closed", "404" or "cluster-a:90 cluster-b:10".
func (l Landing) String() string {
	switch {
	case l.Closed:
		return "closed"
	case l.Status != 0:
		return fmt.Sprint(l.Status)
	}
	parts := make([]string, 0, len(l.Shares))
	for _, name := range sortedKeys(l.Shares) {
		parts = append(parts, fmt.Sprintf("%s:%d", name, l.Shares[name]))
	}
	return strings.Join(parts, " ")
}

// Outbound walks what the workload sends. An error is a fault of the configuration.
func (c *Config) Outbound(r *Request) (Landing, error) { return c.walk(outboundListener, r) }

// Inbound walks what comes to the workload. An error is a fault of the configuration.
func (c *Config) Inbound(r *Request) (Landing, error) { return c.walk(inboundListener, r) }

func (c *Config) walk(name string, r *Request) (Landing, error) {
	l := c.listeners[name]
	if l == nil {
		return Landing{Closed: true}, nil
	}
	chain, err := chainFor(l, r)
	if err != nil || chain == nil {
		return Landing{Closed: true}, err
	}
	return c.filter(chain, r)
}

// filter says what a chain's one filter does with a request.
func (c *Config) filter(chain *listenerv3.FilterChain, r *Request) (Landing, error) {
	if n := len(chain.GetFilters()); n != 1 {
		return Landing{}, fmt.Errorf("chain %q has %d filters", chain.GetName(), n)
	}
	message, err := chain.GetFilters()[0].GetTypedConfig().UnmarshalNew()
	if err != nil {
		return Landing{}, fmt.Errorf("chain %q: %w", chain.GetName(), err)
	}
	switch m := message.(type) {
	case *directv3.Config:
		return Landing{Closed: true}, nil
	case *tcpproxyv3.TcpProxy:
		return c.tcp(m)
	case *hcmv3.HttpConnectionManager:
		if r.ServerName != "" {
			return Landing{Closed: true}, nil // a handshake is no HTTP
		}
		return c.http(m, r)
	default:
		return Landing{}, fmt.Errorf("chain %q has a %T", chain.GetName(), m)
	}
}

func (c *Config) tcp(m *tcpproxyv3.TcpProxy) (Landing, error) {
	if one := m.GetCluster(); one != "" {
		return c.landing(map[string]uint32{one: 1})
	}
	shares := map[string]uint32{}
	for _, w := range m.GetWeightedClusters().GetClusters() {
		shares[w.GetName()] += w.GetWeight()
	}
	return c.landing(shares)
}

// landing checks that the clusters of a landing exist.
func (c *Config) landing(shares map[string]uint32) (Landing, error) {
	for name := range shares {
		if c.clusters[name] == nil {
			return Landing{}, fmt.Errorf("no cluster %q", name)
		}
	}
	return Landing{Shares: shares}, nil
}
