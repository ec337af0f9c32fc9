// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package network

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os/exec"
	"strings"
)

// Service is one port of one Service address, with the endpoints that stand behind it.
type Service struct {
	// Name is used in comments: namespace/name:port.
	Name     string
	Address  netip.Addr
	Protocol string // tcp or udp
	Port     int
	// Endpoints are of the same family as Address. With none, connections are refused, as kube-proxy has it.
	Endpoints []netip.AddrPort
}

// Serve makes the node send the traffic of all Services to their endpoints, and refuse the rest of the Service
// addresses. It replaces what an earlier call asked for; connections that exist stay as they are.
func (n *Node) Serve(ctx context.Context, services []Service) error {
	families := []struct {
		tool, prefix string
		v6           bool
	}{{"iptables-restore", servicePrefix4, false}}
	if n.ipv6 {
		families = append(families, struct {
			tool, prefix string
			v6           bool
		}{"ip6tables-restore", servicePrefix6, true})
	}
	for _, f := range families {
		var own []Service
		for _, s := range services {
			if s.Address.Is6() == f.v6 {
				own = append(own, s)
			}
		}
		cmd := exec.CommandContext(ctx, f.tool) //nolint:gosec // one of the two names above
		cmd.Stdin = strings.NewReader(rules(f.prefix, own))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		err := cmd.Run()
		if errors.Is(err, exec.ErrNotFound) {
			return fmt.Errorf("%s is missing: apt-get install iptables", f.tool)
		}
		if err != nil {
			return fmt.Errorf("%s: %w: %s", f.tool, err, strings.TrimSpace(stderr.String()))
		}
	}
	return nil
}

// rules are the whole nat and filter tables of the node, for one address family.
func rules(prefix string, services []Service) string {
	var b strings.Builder
	b.WriteString("*nat\n:PREROUTING ACCEPT [0:0]\n:INPUT ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n:POSTROUTING ACCEPT [0:0]\n:SERVICES - [0:0]\n")
	b.WriteString("-A PREROUTING -j SERVICES\n-A OUTPUT -j SERVICES\n")
	for _, s := range services {
		for i, e := range s.Endpoints {
			_, _ = fmt.Fprintf(&b, "-A SERVICES -d %s -p %s -m %s --dport %d -m comment --comment %q", s.Address, s.Protocol, s.Protocol, s.Port, s.Name)
			if left := len(s.Endpoints) - i; left > 1 {
				_, _ = fmt.Fprintf(&b, " -m statistic --mode random --probability %.10f", 1/float64(left))
			}
			_, _ = fmt.Fprintf(&b, " -j DNAT --to-destination %s\n", e)
		}
	}
	b.WriteString("COMMIT\n*filter\n:INPUT ACCEPT [0:0]\n:FORWARD ACCEPT [0:0]\n:OUTPUT ACCEPT [0:0]\n")
	_, _ = fmt.Fprintf(&b, "-A FORWARD -d %s -j REJECT\n-A OUTPUT -d %s -j REJECT\nCOMMIT\n", prefix, prefix)
	return b.String()
}
