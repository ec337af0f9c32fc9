// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package simulate_test

import (
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/test/simulate"
)

// scenes are the golden inputs of translation: what they translate to is written there, where requests land is said here.
const scenes = "../../internal/envoy/testdata"

func config(t *testing.T, name string) *simulate.Config {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(scenes, name+".in.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := simulate.ReadScene(text)
	if err != nil {
		t.Fatal(err)
	}
	v, _, err := s.View()
	if err != nil {
		t.Fatal(err)
	}
	made, _ := envoy.Build(v)
	c, err := simulate.NewConfig(made)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestEveryConfigurationIsWhole(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob(filepath.Join(scenes, "*.in.yaml"))
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no scenes: %v", err)
	}
	for _, input := range inputs {
		name := filepath.Base(input[:len(input)-len(".in.yaml")])
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := config(t, name).Check(); err != nil {
				t.Error(err)
			}
		})
	}
}

// outbound says where a request lands that the workload of a scene sends.
type outbound struct {
	scene   string
	request simulate.Request
	lands   string
}

func TestOutbound(t *testing.T) {
	t.Parallel()
	const (
		dj      = "the_dj_app_calls_its_two_backends"
		shared  = "tcp_and_http_share_a_port"
		address = "tcp_services_of_one_port_are_told_apart_by_address"
		tls     = "tls_services_of_port_443_are_told_apart_by_server_name"
		web443  = "http_on_port_443_leaves_tls_alone"
		pass    = "allow_all_passes_what_the_mesh_does_not_model"
		match   = "routes_match_by_path_method_scheme_header_and_query"
		grpc    = "grpc_routes_match_by_service_method_and_metadata"
		nothing = "nothing_answers_with_503"
		weights = "tcp_connections_are_weighted"
		policy  = "a_backend_with_its_own_policy_has_clusters_of_its_own"
	)
	to := netip.MustParseAddr
	grpcCall := map[string]string{"content-type": "application/grpc+proto"}
	every := map[string]string{"x-exact": "1", "x-prefix": "pq", "x-suffix": "rs", "x-regex": "aa", "x-range": "4", "x-not": "yes", "x-present": ""}
	without := func(name, value string) map[string]string {
		out := maps.Clone(every)
		if delete(out, name); value != "" {
			out[name] = value
		}
		return out
	}
	for name, tt := range map[string]outbound{
		"a canary is split by weight":                       {dj, simulate.Request{Port: 9080, Host: "jazz.prod.svc.cluster.local"}, "cds_egress_m_jazz-v1_http_9080:90 cds_egress_m_jazz-v2_http_9080:10"},
		"a host may carry its port":                         {dj, simulate.Request{Port: 9080, Host: "metal.prod.svc.cluster.local:9080"}, "cds_egress_m_metal-v1_http_9080:1"},
		"a host is read without regard to case":             {dj, simulate.Request{Port: 9080, Host: "METAL.prod.svc.cluster.local"}, "cds_egress_m_metal-v1_http_9080:1"},
		"a host that is no backend gets 404":                {dj, simulate.Request{Port: 9080, Host: "jazz-v1"}, "404"},
		"a host with another port gets 404":                 {dj, simulate.Request{Port: 9080, Host: "metal.prod.svc.cluster.local:80"}, "404"},
		"a port that no backend uses is closed":             {dj, simulate.Request{Port: 9081, Host: "jazz.prod.svc.cluster.local"}, "closed"},
		"TLS to a port of HTTP is closed":                   {dj, simulate.Request{Port: 9080, ServerName: "jazz.prod.svc.cluster.local"}, "closed"},
		"AWS is open under DROP_ALL":                        {dj, simulate.Request{Port: 443, ServerName: "s3.us-west-2.amazonaws.com"}, "cds_egress_m_amazonaws:1"},
		"AWS is open on port 443 alone":                     {dj, simulate.Request{Port: 8443, ServerName: "s3.us-west-2.amazonaws.com"}, "closed"},
		"a name that only ends like AWS is closed":          {dj, simulate.Request{Port: 443, ServerName: "evilamazonaws.com"}, "closed"},
		"other TLS is closed under DROP_ALL":                {dj, simulate.Request{Port: 443, ServerName: "example.com"}, "closed"},
		"the listener's own port is closed":                 {dj, simulate.Request{Port: 15001, Host: "jazz.prod.svc.cluster.local"}, "closed"},
		"an address decides for TCP":                        {shared, simulate.Request{Port: 8080, Address: to("10.0.0.12")}, "cds_egress_m_db_tcp_3306:1"},
		"the rest of the port is HTTP":                      {shared, simulate.Request{Port: 8080, Address: to("10.0.0.13"), Host: "api.prod.svc.cluster.local"}, "cds_egress_m_api_http_8080:1"},
		"an unknown host of the port passes":                {shared, simulate.Request{Port: 8080, Address: to("10.0.0.13"), Host: "example.com"}, "cds_egress_m_mesh-allow-all:1"},
		"the database's own port passes":                    {shared, simulate.Request{Port: 3306, Address: to("10.0.0.12")}, "cds_egress_m_mesh-allow-all:1"},
		"one of two TCP services, by IPv4":                  {address, simulate.Request{Port: 6379, Address: to("10.0.0.12")}, "cds_egress_m_green_tcp_6379:1"},
		"one of two TCP services, by IPv6":                  {address, simulate.Request{Port: 6379, Address: to("fd00::b")}, "cds_egress_m_blue_tcp_6379:1"},
		"a headless TCP service gets the rest":              {address, simulate.Request{Port: 6379, Address: to("10.1.2.3")}, "cds_egress_m_headless_tcp_6379:1"},
		"a server name decides, whatever its case":          {tls, simulate.Request{Port: 443, ServerName: "alpha.example.com"}, "cds_egress_m_alpha_tcp_443:1"},
		"a server name decides for the second":              {tls, simulate.Request{Port: 443, ServerName: "beta.example.com"}, "cds_egress_m_beta_tcp_443:1"},
		"AWS comes before the rest":                         {tls, simulate.Request{Port: 443, ServerName: "sts.amazonaws.com"}, "cds_egress_m_amazonaws:1"},
		"what has no server name goes to the first":         {tls, simulate.Request{Port: 443}, "cds_egress_m_alpha_tcp_443:1"},
		"plain HTTP on port 443":                            {web443, simulate.Request{Port: 443, Host: "api.prod"}, "cds_egress_m_api_http_443:1"},
		"TLS passes beside HTTP on port 443":                {web443, simulate.Request{Port: 443, ServerName: "example.com"}, "cds_egress_m_mesh-allow-all:1"},
		"any port passes under ALLOW_ALL":                   {pass, simulate.Request{Port: 5432}, "cds_egress_m_mesh-allow-all:1"},
		"any host passes on a port of HTTP":                 {pass, simulate.Request{Port: 8080, Host: "example.com"}, "cds_egress_m_mesh-allow-all:1"},
		"the listener's own port is closed under ALLOW_ALL": {pass, simulate.Request{Port: 15001}, "closed"},
		"an exact path":                                     {match, simulate.Request{Port: 8080, Host: "api", Path: "/exact"}, "cds_egress_m_b_http_8080:1"},
		"an exact path is no prefix":                        {match, simulate.Request{Port: 8080, Host: "api", Path: "/exact/1"}, "cds_egress_m_a_http_8080:1"},
		"an expression takes the whole path":                {match, simulate.Request{Port: 8080, Host: "api", Path: "/v12/x"}, "cds_egress_m_b_http_8080:1"},
		"an expression takes no part of a path":             {match, simulate.Request{Port: 8080, Host: "api", Path: "/a/v12/x"}, "cds_egress_m_a_http_8080:1"},
		"a method":                                          {match, simulate.Request{Port: 8080, Host: "api", Path: "/method/1", Method: "POST"}, "cds_egress_m_b_http_8080:1"},
		"another method":                                    {match, simulate.Request{Port: 8080, Host: "api", Path: "/method/1"}, "cds_egress_m_a_http_8080:1"},
		"a scheme":                                          {match, simulate.Request{Port: 8080, Host: "api", Path: "/scheme", Scheme: "https"}, "cds_egress_m_b_http_8080:1"},
		"another scheme":                                    {match, simulate.Request{Port: 8080, Host: "api", Path: "/scheme"}, "cds_egress_m_a_http_8080:1"},
		"all headers":                                       {match, simulate.Request{Port: 8080, Host: "api", Path: "/headers", Headers: every}, "cds_egress_m_b_http_8080:1"},
		"one header less":                                   {match, simulate.Request{Port: 8080, Host: "api", Path: "/headers", Headers: without("x-present", "")}, "cds_egress_m_a_http_8080:1"},
		"one header more":                                   {match, simulate.Request{Port: 8080, Host: "api", Path: "/headers", Headers: without("x-absent", "1")}, "cds_egress_m_a_http_8080:1"},
		"a range ends before its end":                       {match, simulate.Request{Port: 8080, Host: "api", Path: "/headers", Headers: without("x-range", "5")}, "cds_egress_m_a_http_8080:1"},
		"an inverted match":                                 {match, simulate.Request{Port: 8080, Host: "api", Path: "/headers", Headers: without("x-not", "no")}, "cds_egress_m_a_http_8080:1"},
		"query parameters":                                  {match, simulate.Request{Port: 8080, Host: "api", Path: "/query?color=blue&any="}, "cds_egress_m_b_http_8080:1"},
		"a query parameter less":                            {match, simulate.Request{Port: 8080, Host: "api", Path: "/query?color=blue"}, "cds_egress_m_a_http_8080:1"},
		"a gRPC method":                                     {grpc, simulate.Request{Port: 8080, Host: "color", Path: "/color.Color/Get", Method: "POST", Headers: grpcCall}, "cds_egress_m_b_grpc_9000:1"},
		"a gRPC service":                                    {grpc, simulate.Request{Port: 8080, Host: "color", Path: "/color.Color/Set", Method: "POST", Headers: grpcCall}, "cds_egress_m_a_grpc_9000:1"},
		"another gRPC service gets 404":                     {grpc, simulate.Request{Port: 8080, Host: "color", Path: "/color.Colors/Get", Method: "POST", Headers: grpcCall}, "404"},
		"what is no gRPC gets 404":                          {grpc, simulate.Request{Port: 8080, Host: "color", Path: "/color.Color/Get", Method: "POST"}, "404"},
		"weights of 0 answer 503":                           {nothing, simulate.Request{Port: 8080, Host: "zero", Path: "/zero"}, "503"},
		"a weight of 0 beside another gets nothing":         {nothing, simulate.Request{Port: 8080, Host: "zero"}, "cds_egress_m_b_http_8080:1"},
		"a target that is missing answers 503":              {nothing, simulate.Request{Port: 8080, Host: "missing"}, "503"},
		"a router without routes answers 503":               {nothing, simulate.Request{Port: 8080, Host: "empty"}, "503"},
		"TCP without a target is closed":                    {nothing, simulate.Request{Port: 3306}, "closed"},
		"TCP is split by weight":                            {weights, simulate.Request{Port: 3306}, "cds_egress_m_a_tcp_3306:90 cds_egress_m_b_tcp_3307:10"},
		"a policy of its own has a cluster of its own":      {policy, simulate.Request{Port: 8080, Host: "strict"}, "cds_egress_m_a_http_8080_strict:1"},
		"the default policy has the plain cluster":          {policy, simulate.Request{Port: 8080, Host: "api"}, "cds_egress_m_a_http_8080:1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := config(t, tt.scene).Outbound(&tt.request)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != tt.lands {
				t.Errorf("lands at %s, want %s", got, tt.lands)
			}
		})
	}
}

func TestInbound(t *testing.T) {
	t.Parallel()
	const every = "a_node_serves_every_protocol"
	for name, tt := range map[string]outbound{
		"http":                               {every, simulate.Request{Port: 8080, Host: "anything"}, "cds_ingress_m_web_http_8080:1"},
		"http2":                              {every, simulate.Request{Port: 8081, Host: "anything"}, "cds_ingress_m_web_http2_8081:1"},
		"grpc":                               {every, simulate.Request{Port: 8082, Host: "anything"}, "cds_ingress_m_web_grpc_8082:1"},
		"tcp":                                {every, simulate.Request{Port: 3306}, "cds_ingress_m_web_tcp_3306:1"},
		"a port without a listener":          {every, simulate.Request{Port: 8083, Host: "anything"}, "closed"},
		"the listener's own port":            {every, simulate.Request{Port: 15000}, "closed"},
		"a proxy that serves nothing":        {"a_client_alone_has_no_inbound_listener", simulate.Request{Port: 8080}, "closed"},
		"the admin interface of the proxy":   {"ports_of_the_proxy_itself_are_refused", simulate.Request{Port: 9901}, "closed"},
		"a listener beside those refused":    {"ports_of_the_proxy_itself_are_refused", simulate.Request{Port: 8080}, "cds_ingress_m_web_http_8080:1"},
		"the outbound listener from outside": {"ports_of_the_proxy_itself_are_refused", simulate.Request{Port: 15001}, "closed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := config(t, tt.scene).Inbound(&tt.request)
			if err != nil {
				t.Fatal(err)
			}
			if got.String() != tt.lands {
				t.Errorf("lands at %s, want %s", got, tt.lands)
			}
		})
	}
}
