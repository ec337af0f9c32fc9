// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
)

// The cluster's addresses. Its network is its own, so they clash with nobody's.
const (
	nodeName    = "lab"
	nodeIP      = "10.89.0.1"
	nodeIP6     = "fd00:89::1"
	serviceCIDR = "10.96.0.0/16,fd00:96::/112"
	// apiService is the address of the Service "kubernetes", the first of the range.
	apiService = "10.96.0.1"
	// registryAddress is the registry's, as seen from the node; the node's containerd is told so in rootfs/etc/containerd.
	registryAddress = "127.0.0.1:5000"
	// apiAddress is the API server's, as seen from the node.
	apiAddress = "127.0.0.1:6443"
)

// setUpNetwork gives the node an interface. A default route is needed, though it leads nowhere: without one the kernel refuses a Service's address before
// the rules that translate it are asked.
func setUpNetwork(ctx context.Context) error {
	const batch = `
link set lo up
link add node0 type veth peer name node0-peer
link set node0-peer up
link set node0 up
addr add ` + nodeIP + `/24 dev node0
route add default dev node0
`
	if err := ip(ctx, batch, "-batch", "-"); err != nil {
		return err
	}
	settings := []string{"ipv4/ip_forward", "ipv4/conf/all/forwarding"}
	if hasIPv6() {
		if err := ip(ctx, "addr add "+nodeIP6+"/64 dev node0 nodad\nroute add default dev node0\n", "-6", "-batch", "-"); err != nil {
			return err
		}
		settings = append(settings, "ipv6/conf/all/forwarding")
	}
	for _, setting := range settings {
		if err := os.WriteFile("/proc/sys/net/"+setting, []byte("1"), 0o600); err != nil {
			return fmt.Errorf("turning the node into a router: %w", err)
		}
	}
	return nil
}

// hasIPv6 says whether the kernel speaks IPv6. The cluster then has two address families.
func hasIPv6() bool {
	_, err := os.Stat("/proc/sys/net/ipv6")
	return err == nil
}

// ip runs the command of that name.
func ip(ctx context.Context, input string, args ...string) error {
	cmd := exec.CommandContext(ctx, "ip", args...) //nolint:gosec // the arguments are written above
	cmd.Stdin = strings.NewReader(input)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("ip %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// families returns both of "IPv4,IPv6", or the first where the kernel has no IPv6.
func families(both string) string {
	first, _, _ := strings.Cut(both, ",")
	if hasIPv6() {
		return both
	}
	return first
}
