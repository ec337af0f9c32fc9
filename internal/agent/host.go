// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
)

// hostAddresses returns this network namespace's own addresses that others can reach, sorted.
func hostAddresses() ([]netip.Addr, error) {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("read the host's addresses: %w", err)
	}
	var reachable []netip.Addr
	for _, a := range all {
		prefix, err := netip.ParsePrefix(a.String())
		if err != nil {
			continue // not an IP address
		}
		if ip := prefix.Addr().Unmap(); ip.IsGlobalUnicast() {
			reachable = append(reachable, ip)
		}
	}
	slices.SortFunc(reachable, netip.Addr.Compare)
	return slices.Compact(reachable), nil
}

// hasIPv6 says whether sockets of IPv6 can be opened.
func hasIPv6(ctx context.Context) bool {
	var config net.ListenConfig
	l, err := config.Listen(ctx, "tcp6", "[::]:0")
	if err != nil {
		return false
	}
	_ = l.Close() // nothing was sent, nothing can be lost
	return true
}
