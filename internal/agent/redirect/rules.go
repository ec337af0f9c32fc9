// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package redirect programs the rules that bring an application's TCP connections to Envoy; the agent's redirect command calls it.
package redirect

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// The chains have App Mesh's names, so that what looks for them finds them.
const (
	ingressChain = "APPMESH_INGRESS"
	egressChain  = "APPMESH_EGRESS"
	// maxMultiport is how many ports one match takes.
	maxMultiport = 15
)

// family is a version of IP and the programs that program it.
type family struct {
	name string
	// save and restore are the programs that print and change the rules.
	save, restore string
	loopback      string
	holds         func(netip.Prefix) bool
}

var (
	ipv4 = family{"IPv4", "iptables-save", "iptables-restore", "127.0.0.0/8", func(p netip.Prefix) bool { return p.Addr().Is4() }}
	ipv6 = family{"IPv6", "ip6tables-save", "ip6tables-restore", "::1/128", func(p netip.Prefix) bool { return p.Addr().Is6() }}
)

// state is what a namespace has of our rules.
type state struct {
	// jumps are the rules, in iptables-save's words without -A, that lead to our chains.
	jumps []string
	// chains are those of ours that exist.
	chains []string
}

// parseState reads our part of iptables-save's output, or of a transaction.
func parseState(saved string) state {
	var s state
	for line := range strings.Lines(saved) {
		line = strings.TrimSpace(line)
		if rule, ok := strings.CutPrefix(line, "-A "); ok {
			if chain, _, _ := strings.Cut(rule, " "); chain != ingressChain && chain != egressChain && leadsToOurs(rule) {
				s.jumps = append(s.jumps, rule)
			}
			continue
		}
		chain := strings.TrimPrefix(strings.TrimPrefix(line, ":"), "-N ")
		if name, _, _ := strings.Cut(chain, " "); chain != line && (name == ingressChain || name == egressChain) {
			s.chains = append(s.chains, name)
		}
	}
	return s
}

func leadsToOurs(rule string) bool {
	_, target, found := strings.Cut(rule+" ", " -j ")
	return found && (strings.HasPrefix(target, ingressChain+" ") || strings.HasPrefix(target, egressChain+" "))
}

// removal is the part of a transaction that takes out what there is.
func (s state) removal() []string {
	var lines []string
	for _, rule := range s.jumps {
		lines = append(lines, "-D "+rule)
	}
	for _, chain := range s.chains {
		lines = append(lines, "-F "+chain)
	}
	for _, chain := range s.chains {
		lines = append(lines, "-X "+chain)
	}
	return lines
}

// transaction is the input of iptables-restore that brings a namespace from a state to what the configuration wants, in one step.
func transaction(c *Config, f family, from state) string {
	lines := append([]string{"*nat"}, from.removal()...)
	lines = append(lines, "-N "+egressChain)
	lines = append(lines, egress(c, f)...)
	lines = append(lines, "-A OUTPUT -p tcp -m addrtype ! --dst-type LOCAL -j "+egressChain)
	if len(c.AppPorts) > 0 {
		lines = append(lines, "-N "+ingressChain)
		for ports := range slices.Chunk(c.AppPorts, maxMultiport) {
			lines = append(lines, fmt.Sprintf("-A %s -p tcp -m multiport --dports %s -j REDIRECT --to-ports %d", ingressChain, join(ports), c.IngressPort))
		}
		lines = append(lines, "-A PREROUTING -p tcp -m addrtype ! --src-type LOCAL -j "+ingressChain)
	}
	return finish(lines)
}

// egress are the rules of the egress chain: what is left alone, then the redirect.
func egress(c *Config, f family) []string {
	var lines []string
	add := func(format string, args ...any) {
		lines = append(lines, "-A "+egressChain+" "+fmt.Sprintf(format, args...))
	}
	// The jump already leaves out what is local; this holds where the loopback interface is down or has more than its own addresses.
	add("-d %s -j RETURN", f.loopback)
	if c.User != nil {
		add("-m owner --uid-owner %d -j RETURN", *c.User)
	}
	if c.Group != nil {
		add("-m owner --gid-owner %d -j RETURN", *c.Group)
	}
	ports := slices.Clone(c.IgnoredPorts)
	if !slices.Contains(ports, sshPort) {
		ports = append(ports, sshPort)
	}
	slices.Sort(ports)
	for ports := range slices.Chunk(ports, maxMultiport) {
		add("-p tcp -m multiport --dports %s -j RETURN", join(ports))
	}
	for _, ip := range c.IgnoredIPs {
		if f.holds(ip) {
			add("-d %s -p tcp -j RETURN", ip)
		}
	}
	add("-p tcp -j REDIRECT --to-ports %d", c.EgressPort)
	return lines
}

// undoing is the transaction that takes our rules out.
func undoing(from state) string {
	return finish(append([]string{"*nat"}, from.removal()...))
}

func finish(lines []string) string {
	return strings.Join(append(lines, "COMMIT"), "\n") + "\n"
}

func join(ports []uint16) string {
	texts := make([]string, len(ports))
	for i, port := range ports {
		texts[i] = strconv.Itoa(int(port))
	}
	return strings.Join(texts, ",")
}
