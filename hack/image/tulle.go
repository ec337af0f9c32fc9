// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"strconv"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/tulle-mesh/tulle/hack/image/pack"
)

// tulleUser is who the control plane runs as: nobody in particular, and not root.
const tulleUser = 65532

// tulle is the control plane's image: one static program, and the authorities that it may have to trust.
func tulle(in inputs) (v1.Image, error) {
	tree := pack.Base("tulle", tulleUser)
	tree.Copy("/usr/bin/tulle", in.program("tulle"))
	layer, err := tree.Layer()
	if err != nil {
		return nil, err
	}
	return pack.Image(v1.Config{
		Entrypoint: []string{"/usr/bin/tulle"},
		Env:        []string{"PATH=/usr/bin"},
		User:       strconv.Itoa(tulleUser),
		Labels:     in.labels("tulle"),
	}, layer)
}
