// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/tulle-mesh/tulle/hack/image/pack"
)

// agentUser is who Envoy runs as: the user whose traffic the redirect leaves alone.
const agentUser = 1337

func agentNeeds() []pack.Need {
	return append(pack.IptablesNeeds(), pack.Need{File: "/usr/bin/curl", Package: "curl"})
}

// agent is the sidecar's image: Envoy, the agent that starts it, iptables for the redirect, and a shell with curl for those who look inside.
// The agent has a layer of its own, the top one, since it changes more often than the rest.
func agent(in inputs) (v1.Image, error) {
	below := pack.Base("envoy", agentUser)
	below.Program("/usr/bin/envoy", in.envoy)
	below.Program("/usr/bin/curl", "/usr/bin/curl")
	below.Iptables()
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
