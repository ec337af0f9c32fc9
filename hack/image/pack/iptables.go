// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package pack

import (
	"fmt"
	"path/filepath"
	"runtime"
)

// The two programs behind the many names of iptables.
const (
	iptablesNft    = "/usr/sbin/xtables-nft-multi"
	iptablesLegacy = "/usr/sbin/xtables-legacy-multi"
)

// IptablesNeeds are what Iptables takes from this machine.
func IptablesNeeds() []Need {
	return []Need{{iptablesNft, "iptables"}, {iptablesLegacy, "iptables"}}
}

// Iptables adds both backends of iptables with every extension. The plain names mean nftables, as they do on Debian.
func (t *Tree) Iptables() {
	backends := []struct{ infix, program string }{{"-legacy", iptablesLegacy}, {"-nft", iptablesNft}, {"", iptablesNft}}
	for _, backend := range backends {
		t.Program(backend.program, backend.program)
		for _, family := range []string{"iptables", "ip6tables"} {
			for _, verb := range []string{"", "-save", "-restore"} {
				t.Link("/usr/sbin/"+family+backend.infix+verb, filepath.Base(backend.program))
			}
		}
	}
	triplet := "x86_64-linux-gnu"
	if runtime.GOARCH == "arm64" {
		triplet = "aarch64-linux-gnu"
	}
	extensions, err := filepath.Glob("/usr/lib/" + triplet + "/xtables/*.so")
	if err != nil || extensions == nil {
		t.faults = append(t.faults, fmt.Errorf("no extensions of iptables in /usr/lib/%s/xtables: apt-get install iptables", triplet))
	}
	for _, extension := range extensions {
		t.Program(extension, extension)
	}
}
