// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy_test

import (
	"bytes"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/test/simulate"
)

// FuzzBuild makes any View from bytes and holds what Build promises: no panic, nothing that Envoy's rules refuse, nothing that leads nowhere, the same bytes again, and the same
// by way of another View.
func FuzzBuild(f *testing.F) {
	for _, seed := range []string{"", "a", "\x01\x02\x03\x04\x05\x06\x07\x08", strings.Repeat("\x05\x01\x09\x03", 64), strings.Repeat("\xff\x00\x10", 99), strings.Repeat("tulle/*:%\x02", 40)} {
		f.Add([]byte(seed), []byte(seed+"x"))
	}
	random := rand.NewChaCha8([32]byte{})
	for i := range 200 {
		one, two := make([]byte, 2*i), make([]byte, 100)
		_, _ = random.Read(one)
		_, _ = random.Read(two)
		f.Add(one, two)
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		v, other := anyView(one), anyView(two)
		made, findings := envoy.Build(v)
		config, err := simulate.NewConfig(made)
		if err != nil {
			t.Fatal(err)
		}
		if err := config.Check(); err != nil {
			t.Error(err)
		}
		again, _ := envoy.Build(v)
		var step envoy.Incremental
		step.Build(other)
		stepped, stepFindings := step.Build(v)
		if len(findings) != len(stepFindings) {
			t.Errorf("findings %v, by steps %v", findings, stepFindings)
		}
		for i, r := range all(made) {
			if m, ok := r.Message.(interface{ ValidateAll() error }); !ok || m.ValidateAll() != nil {
				t.Errorf("%s: %v", r.Name, m.ValidateAll())
			}
			if !bytes.Equal(encode(t, r.Message), encode(t, all(again)[i].Message)) {
				t.Errorf("%s has other bytes the second time", r.Name)
			}
		}
		if !slices.EqualFunc(all(made), all(stepped), sameResource) {
			t.Error("the way by another View leads elsewhere")
		}
		bootstrap, _ := envoy.Static(v, nil, envoy.StaticOptions{})
		if err := bootstrap.ValidateAll(); err != nil {
			t.Errorf("the static form: %v", err)
		}
	})
}

func encode(t *testing.T, m proto.Message) []byte {
	t.Helper()
	out, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// dice turns bytes into choices; when they are used up every choice is the first.
type dice struct{ rest []byte }

func (d *dice) roll(sides int) int {
	if len(d.rest) == 0 {
		return 0
	}
	n := int(d.rest[0]) % sides
	d.rest = d.rest[1:]
	return n
}

func pick[T any](d *dice, list ...T) T { return list[d.roll(len(list))] }

func (d *dice) text() string {
	const raw = 4
	odd := []string{"a", "api", "API", "", "*", "a.b.svc", "über", "x:8080", "/", "/p/.*", "([", "a b", "\x00", "default_backend", strings.Repeat("long", 100)}
	n := d.roll(len(odd) + 2)
	if n < len(odd) {
		return odd[n]
	}
	length := min(raw, len(d.rest))
	text := strings.ToValidUTF8(string(d.rest[:length]), "?")
	d.rest = d.rest[length:]
	return text
}

func (d *dice) textPointer() *string {
	if d.roll(2) == 0 {
		return nil
	}
	return new(d.text())
}

func (d *dice) port() int32 {
	return pick(d, int32(8080), 443, 80, 15001, 15000, 9901, 0, -1, 70000, 3306)
}

func (d *dice) protocol() mesh.Protocol {
	return pick(d, mesh.ProtocolHTTP, mesh.ProtocolTCP, mesh.ProtocolHTTP2, mesh.ProtocolGRPC, mesh.Protocol(""))
}

func (d *dice) duration() *mesh.Duration {
	if d.roll(2) == 0 {
		return nil
	}
	return &mesh.Duration{Value: pick(d, int64(0), 1, -1, 15, 1<<62), Unit: pick(d, mesh.Seconds, mesh.Milliseconds, mesh.DurationUnit("h"))}
}

func anyView(data []byte) *mesh.View {
	d := &dice{rest: data}
	v := &mesh.View{
		Proxy:        mesh.NodeKey(d.text(), d.text()),
		Profile:      mesh.Profile{IPv6: d.roll(2) == 1, MetricsExtension: d.roll(2) == 1, StockImage: d.roll(2) == 1},
		Egress:       pick(d, mesh.EgressAllowAll, mesh.EgressDropAll),
		IPPreference: pick(d, mesh.IPPreference(""), mesh.IPv4Only, mesh.IPv6Only, mesh.IPv6Preferred),
	}
	if d.roll(3) == 1 {
		v.Logging = &mesh.Logging{AccessLog: &mesh.AccessLog{File: &mesh.FileAccessLog{Path: d.text(), Format: &mesh.LoggingFormat{Text: d.text(), JSON: nil}}}}
	}
	for range d.roll(3) {
		v.Listeners = append(v.Listeners, d.listener())
	}
	for range d.roll(4) {
		v.Services = append(v.Services, d.service())
	}
	for range d.roll(4) {
		v.Nodes = append(v.Nodes, d.node())
	}
	slices.SortFunc(v.Services, func(x, y mesh.ServiceView) int { return strings.Compare(x.Name, y.Name) })
	v.Services = slices.CompactFunc(v.Services, func(x, y mesh.ServiceView) bool { return x.Name == y.Name })
	return v
}

func (d *dice) listener() mesh.Listener {
	l := mesh.Listener{PortMapping: mesh.PortMapping{Port: d.port(), Protocol: d.protocol()}}
	if d.roll(2) == 1 {
		l.Timeout = &mesh.ListenerTimeout{HTTP: &mesh.HTTPTimeout{PerRequest: d.duration(), Idle: d.duration()}, TCP: &mesh.TCPTimeout{Idle: d.duration()}}
		l.ConnectionPool = &mesh.ConnectionPool{HTTP: &mesh.HTTPConnectionPool{MaxConnections: d.port(), MaxPendingRequests: new(d.port())}}
	}
	return l
}

func (d *dice) node() mesh.NodeView {
	n := mesh.NodeView{Name: pick(d, "a", "b", d.text()), Discovery: mesh.DiscoveryView{
		Type: pick(d, mesh.DiscoveryEndpoints, mesh.DiscoveryLogicalDNS, mesh.DiscoveryStrictDNS), Hostname: d.text(), IPPreference: pick(d, mesh.IPv4Only, mesh.IPv6Only, mesh.IPv6Preferred, ""),
	}}
	for range 1 + d.roll(2) {
		l := mesh.NodeListenerView{Port: d.port(), Protocol: d.protocol()}
		if d.roll(3) == 1 {
			l.HealthCheck = &mesh.HealthCheckPolicy{Protocol: d.protocol(), Path: d.text(), Port: d.port(), IntervalMillis: int64(d.port()), TimeoutMillis: int64(d.port()), HealthyThreshold: d.port(), UnhealthyThreshold: d.port()}
			l.OutlierDetection = &mesh.OutlierDetection{MaxServerErrors: int64(d.port()), Interval: d.duration(), BaseEjectionDuration: d.duration(), MaxEjectionPercent: d.port()}
		}
		n.Listeners = append(n.Listeners, l)
	}
	return n
}

func (d *dice) service() mesh.ServiceView {
	s := mesh.ServiceView{Name: d.text(), OwnPolicy: d.roll(4) == 1}
	for range d.roll(3) {
		s.Addresses = append(s.Addresses, pick(d, netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("fd00::1"), netip.MustParseAddr("::ffff:10.0.0.1"), netip.Addr{}))
	}
	for range d.roll(3) {
		p := mesh.ServicePortView{Port: d.port(), Protocol: d.protocol()}
		if slices.ContainsFunc(s.Ports, func(o mesh.ServicePortView) bool { return o.Port == p.Port }) {
			continue // each port of a service appears once
		}
		for range d.roll(3) {
			p.Routes = append(p.Routes, d.route())
		}
		s.Ports = append(s.Ports, p)
	}
	return s
}

func (d *dice) route() mesh.RouteView {
	r := mesh.RouteView{Route: mesh.RouteKey("m", "r", d.text()), DefaultTimeout: d.duration(), TCPIdle: d.duration()}
	switch d.roll(3) {
	case 0:
		r.HTTP = &mesh.HTTPRouteMatch{Prefix: d.textPointer(), Method: pick(d, "", d.text()), Scheme: pick(d, "", d.text()), Headers: d.headers()}
		if d.roll(2) == 1 {
			r.HTTP.Path = &mesh.HTTPPathMatch{Exact: d.textPointer(), Regex: d.textPointer()}
			r.HTTP.QueryParameters = []mesh.QueryParameter{{Name: d.text(), Match: &mesh.QueryParameterMatch{Exact: d.textPointer()}}, {Name: d.text()}}
		}
	case 1:
		r.GRPC = &mesh.GRPCRouteMatch{ServiceName: d.text(), MethodName: d.text(), Metadata: d.headers()}
	case 2:
		r.TCP = true
	}
	if d.roll(3) == 1 {
		r.Timeout = &mesh.HTTPTimeout{PerRequest: d.duration(), Idle: d.duration()}
		r.Retry = &mesh.RetryPolicy{MaxRetries: int64(d.port()), PerRetryTimeout: d.duration(), HTTPRetryEvents: []string{pick(d, "server-error", "stream-error", d.text())}, TCPRetryEvents: []string{pick(d, "connection-error", d.text())}}
	}
	for range d.roll(4) {
		r.Targets = append(r.Targets, mesh.TargetView{Node: pick(d, "a", "b", d.text()), Port: d.port(), Weight: pick(d, int32(1), 0, -1, 1<<31-1)})
	}
	return r
}

func (d *dice) headers() []mesh.HeaderMatch {
	var out []mesh.HeaderMatch
	for range d.roll(3) {
		h := mesh.HeaderMatch{Name: d.text(), Invert: d.roll(2) == 1}
		if d.roll(2) == 1 {
			h.Match = &mesh.ValueMatch{Exact: d.textPointer(), Prefix: d.textPointer(), Suffix: d.textPointer(), Regex: d.textPointer()}
			if d.roll(3) == 1 {
				h.Match.Range = &mesh.MatchRange{Start: int64(d.port()), End: int64(d.port())}
			}
		}
		out = append(out, h)
	}
	return out
}
