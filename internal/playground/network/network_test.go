// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package network

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPodAddresses(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		node   Node
		number int
		want   string
	}{
		"the first pod":                     {Node{ipv6: true}, 1, "10.244.0.1 fd00:10:244::1"},
		"a pod beyond the first 255":        {Node{ipv6: true}, 300, "10.244.1.44 fd00:10:244::12c"},
		"IPv4 alone where there is no more": {Node{}, 7, "10.244.0.7"},
		"none for zero":                     {Node{}, 0, ""},
		"none beyond the last":              {Node{}, maxPods + 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := tc.node.PodAddresses(tc.number)
			if (err != nil) != (tc.want == "") {
				t.Fatalf("error %v", err)
			}
			var words []string
			for _, a := range got {
				words = append(words, a.String())
			}
			if diff := cmp.Diff(tc.want, strings.Join(words, " ")); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestRules(t *testing.T) {
	t.Parallel()
	service := func(endpoints ...string) Service {
		s := Service{Name: "prod/jazz:http", Address: netip.MustParseAddr("10.96.0.4"), Protocol: "tcp", Port: 80}
		for _, e := range endpoints {
			s.Endpoints = append(s.Endpoints, netip.MustParseAddrPort(e))
		}
		return s
	}
	for name, tc := range map[string]struct {
		services []Service
		want     []string
	}{
		"a Service without endpoints has no rule and so is refused": {[]Service{service()}, nil},
		"one endpoint gets everything": {[]Service{service("10.244.0.1:9080")}, []string{
			`-A SERVICES -d 10.96.0.4 -p tcp -m tcp --dport 80 -m comment --comment "prod/jazz:http" -j DNAT --to-destination 10.244.0.1:9080`,
		}},
		"three endpoints get a third each": {[]Service{service("10.244.0.1:9080", "10.244.0.2:9080", "10.244.0.3:9080")}, []string{
			`-A SERVICES -d 10.96.0.4 -p tcp -m tcp --dport 80 -m comment --comment "prod/jazz:http" -m statistic --mode random --probability 0.3333333333 -j DNAT --to-destination 10.244.0.1:9080`,
			`-A SERVICES -d 10.96.0.4 -p tcp -m tcp --dport 80 -m comment --comment "prod/jazz:http" -m statistic --mode random --probability 0.5000000000 -j DNAT --to-destination 10.244.0.2:9080`,
			`-A SERVICES -d 10.96.0.4 -p tcp -m tcp --dport 80 -m comment --comment "prod/jazz:http" -j DNAT --to-destination 10.244.0.3:9080`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			text := rules(servicePrefix4, tc.services)
			var got []string
			for line := range strings.Lines(text) {
				if strings.HasPrefix(line, "-A SERVICES") {
					got = append(got, strings.TrimSuffix(line, "\n"))
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
			if !strings.Contains(text, "-A FORWARD -d 10.96.0.0/16 -j REJECT\n") {
				t.Error("the Service addresses are not refused")
			}
		})
	}
}
