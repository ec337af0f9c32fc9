// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"path/filepath"
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/tulle-mesh/tulle/hack/image/pack"
)

// agentUser is who Envoy runs as: the user whose traffic the redirect leaves alone.
const agentUser = 1337

// iptables are the two programs behind the many names of iptables.
var iptables = map[string]string{"nft": "/usr/sbin/xtables-nft-multi", "legacy": "/usr/sbin/xtables-legacy-multi"}

func agentNeeds() []pack.Need {
	return []pack.Need{
		{File: "/usr/bin/curl", Package: "curl"},
		{File: iptables["nft"], Package: "iptables"},
		{File: iptables["legacy"], Package: "iptables"},
	}
}

// agent is the sidecar's image: Envoy, the agent that starts it, iptables for the redirect, and a shell with curl for those who look inside.
// The agent has a layer of its own, the top one, since it changes more often than the rest.
func agent(in inputs) (v1.Image, error) {
	below := pack.Base("envoy", agentUser)
	below.Program("/usr/bin/envoy", in.envoy)
	below.Program("/usr/bin/curl", "/usr/bin/curl")
	if err := addIptables(below); err != nil {
		return nil, err
	}
	below.Shell()
	above := &pack.Tree{}
	above.Copy("/usr/bin/tulle-agent", in.program("tulle-agent"))
	lower, err := below.Layer()
	if err != nil {
		return nil, err
	}
	upper, err := above.Layer()
	if err != nil {
		return nil, err
	}
	return pack.Image(v1.Config{
		Entrypoint: []string{"/usr/bin/tulle-agent"},
		Cmd:        []string{"run"},
		Env:        []string{"PATH=/usr/sbin:/usr/bin"},
		User:       strconv.Itoa(agentUser),
		Labels:     in.labels("tulle-agent"),
	}, lower, upper)
}

// addIptables adds both backends with every extension. The plain names mean nftables, as they do on Debian.
func addIptables(tree *pack.Tree) error {
	for _, backend := range []string{"legacy", "nft"} {
		program := iptables[backend]
		tree.Program(program, program)
		for _, family := range []string{"iptables", "ip6tables"} {
			for _, verb := range []string{"", "-save", "-restore"} {
				tree.Link("/usr/sbin/"+family+"-"+backend+verb, filepath.Base(program))
				tree.Link("/usr/sbin/"+family+verb, filepath.Base(program))
			}
		}
	}
	extensions, err := filepath.Glob(tripletFolder() + "/xtables/*.so")
	if err != nil {
		return err
	}
	for _, extension := range extensions {
		tree.Program(extension, extension)
	}
	return nil
}
