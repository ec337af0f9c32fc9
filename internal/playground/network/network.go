// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package network is the cluster network of a sandbox: a node that routes between pods, each in a network namespace
// with an IPv4 and an IPv6 address of its own, and Service addresses as kube-proxy serves them. It may be called inside
// a sandbox alone, from the namespace that is to be the node.
package network

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strconv"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"
)

// Addresses of the network. Nothing of it is seen outside the sandbox, so they cannot clash with the machine's.
const (
	podPrefix4     = "10.244.0.0/16"
	podPrefix6     = "fd00:10:244::/64"
	servicePrefix4 = "10.96.0.0/16"
	servicePrefix6 = "fd00:10:96::/112"
	nodeAddress4   = "10.244.255.254"
	nodeAddress6   = "fd00:10:244::ffff:1"
	// The pods' gateway is the same in each: the other end of the pod's own link.
	gateway4 = "169.254.1.1"
	gateway6 = "fe80::1"
)

// maxPods keeps pod numbers below the node's own address.
const maxPods = 60_000

// Node is the routing end of the network.
type Node struct {
	ipv6 bool
}

// NewNode makes the network namespace of this process the node.
func NewNode() (*Node, error) {
	n := &Node{ipv6: haveIPv6()}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, fmt.Errorf("node: finding lo: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return nil, fmt.Errorf("node: setting lo up: %w", err)
	}
	sysctls := map[string]string{"net/ipv4/ip_forward": "1"}
	addresses, services := []string{nodeAddress4}, []string{servicePrefix4}
	if n.ipv6 {
		sysctls["net/ipv6/conf/all/forwarding"] = "1"
		addresses, services = append(addresses, nodeAddress6), append(services, servicePrefix6)
	}
	for key, value := range sysctls {
		if err := os.WriteFile("/proc/sys/"+key, []byte(value), 0o600); err != nil {
			return nil, fmt.Errorf("node: setting %s: %w", key, err)
		}
	}
	for _, a := range addresses {
		if err := netlink.AddrAdd(lo, host(a)); err != nil {
			return nil, fmt.Errorf("node: address %s: %w", a, err)
		}
	}
	// Packets to a Service nobody serves must have a way, or they would not get as far as the rule that refuses them.
	for _, s := range services {
		prefix := netip.MustParsePrefix(s)
		dst := &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}
		if err := netlink.RouteAdd(&netlink.Route{LinkIndex: lo.Attrs().Index, Dst: dst}); err != nil {
			return nil, fmt.Errorf("node: route to %s: %w", s, err)
		}
	}
	return n, nil
}

// IPv6 says whether the kernel has it; without it pods have IPv4 addresses alone.
func (n *Node) IPv6() bool { return n.ipv6 }

func haveIPv6() bool {
	_, err := os.Stat("/proc/sys/net/ipv6")
	return !errors.Is(err, fs.ErrNotExist)
}

// PodAddresses returns the addresses of the pod with the number, which counts from 1; IPv4 first.
func (n *Node) PodAddresses(number int) ([]netip.Addr, error) {
	if number < 1 || number > maxPods {
		return nil, fmt.Errorf("pod number %d is not between 1 and %d", number, maxPods)
	}
	return n.addresses(podPrefix4, podPrefix6, number), nil
}

// ServiceAddresses returns the addresses of the Service with the number, which counts from 1; IPv4 first.
func (n *Node) ServiceAddresses(number int) ([]netip.Addr, error) {
	if number < 1 || number > maxPods {
		return nil, fmt.Errorf("service number %d is not between 1 and %d", number, maxPods)
	}
	return n.addresses(servicePrefix4, servicePrefix6, number), nil
}

func (n *Node) addresses(prefix4, prefix6 string, number int) []netip.Addr {
	found := []netip.Addr{nth(netip.MustParsePrefix(prefix4), number)}
	if n.ipv6 {
		found = append(found, nth(netip.MustParsePrefix(prefix6), number))
	}
	return found
}

// nth sets the last two bytes of the prefix's address to the number.
func nth(p netip.Prefix, number int) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	b[len(b)-2], b[len(b)-1] = byte(number>>8), byte(number) //nolint:gosec // cut to a byte on purpose
	a, _ := netip.AddrFromSlice(b)
	return a
}

// Attach gives the namespace of the process a link to the node, with the addresses of the pod with the number.
func (n *Node) Attach(pid, number int) error {
	addresses, err := n.PodAddresses(number)
	if err != nil {
		return err
	}
	name := "pod" + strconv.Itoa(number)
	link := &netlink.Veth{LinkAttrs: netlink.NewLinkAttrs(), PeerName: "eth0", PeerNamespace: netlink.NsPid(pid)}
	link.Name = name
	if err := netlink.LinkAdd(link); err != nil {
		return fmt.Errorf("%s: making its link: %w", name, err)
	}
	if err := n.nodeEnd(name, addresses); err != nil {
		return fmt.Errorf("%s: node's end: %w", name, err)
	}
	if err := podEnd(pid, addresses); err != nil {
		return fmt.Errorf("%s: pod's end: %w", name, err)
	}
	return nil
}

func (n *Node) nodeEnd(name string, addresses []netip.Addr) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return fmt.Errorf("finding it: %w", err)
	}
	if err := netlink.AddrAdd(link, host(gateway4)); err != nil {
		return fmt.Errorf("address %s: %w", gateway4, err)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return fmt.Errorf("setting it up: %w", err)
	}
	if n.ipv6 {
		if err := netlink.AddrAdd(link, linkLocal(gateway6)); err != nil {
			return fmt.Errorf("address %s: %w", gateway6, err)
		}
	}
	for _, a := range addresses {
		source := nodeAddress4
		if a.Is6() {
			source = nodeAddress6
		}
		route := &netlink.Route{LinkIndex: link.Attrs().Index, Dst: single(a), Src: net.ParseIP(source), Scope: netlink.SCOPE_LINK}
		if err := netlink.RouteAdd(route); err != nil {
			return fmt.Errorf("route to %s: %w", a, err)
		}
	}
	return nil
}

func podEnd(pid int, addresses []netip.Addr) (err error) {
	ns, err := netns.GetFromPid(pid)
	if err != nil {
		return fmt.Errorf("opening its namespace: %w", err)
	}
	defer func() { err = errors.Join(err, ns.Close()) }()
	h, err := netlink.NewHandleAt(ns)
	if err != nil {
		return fmt.Errorf("opening netlink in its namespace: %w", err)
	}
	defer h.Close()
	for _, name := range []string{"lo", "eth0"} {
		link, err := h.LinkByName(name)
		if err != nil {
			return fmt.Errorf("finding %s: %w", name, err)
		}
		if err := h.LinkSetUp(link); err != nil {
			return fmt.Errorf("setting %s up: %w", name, err)
		}
	}
	eth0, err := h.LinkByName("eth0")
	if err != nil {
		return fmt.Errorf("finding eth0: %w", err)
	}
	for _, a := range addresses {
		if err := h.AddrAdd(eth0, host(a.String())); err != nil {
			return fmt.Errorf("address %s: %w", a, err)
		}
	}
	return routes(h, eth0.Attrs().Index, len(addresses) > 1)
}

func routes(h *netlink.Handle, index int, ipv6 bool) error {
	toGateway := &netlink.Route{LinkIndex: index, Dst: single(netip.MustParseAddr(gateway4)), Scope: netlink.SCOPE_LINK}
	if err := h.RouteAdd(toGateway); err != nil {
		return fmt.Errorf("route to %s: %w", gateway4, err)
	}
	gateways := []string{gateway4}
	if ipv6 {
		gateways = append(gateways, gateway6)
	}
	for _, g := range gateways {
		if err := h.RouteAdd(&netlink.Route{LinkIndex: index, Gw: net.ParseIP(g)}); err != nil {
			return fmt.Errorf("default route by %s: %w", g, err)
		}
	}
	return nil
}

// single is the route destination that holds the address alone.
func single(a netip.Addr) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}
}

// host is an address without neighbours. Nobody else can have it, so it is not looked for before it is used.
func host(address string) *netlink.Addr {
	return &netlink.Addr{IPNet: single(netip.MustParseAddr(address)), Flags: unix.IFA_F_NODAD}
}

func linkLocal(address string) *netlink.Addr {
	return &netlink.Addr{
		IPNet: &net.IPNet{IP: net.ParseIP(address), Mask: net.CIDRMask(64, 128)},
		Flags: unix.IFA_F_NODAD, Scope: int(netlink.SCOPE_LINK),
	}
}
