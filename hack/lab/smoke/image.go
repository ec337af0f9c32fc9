// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"os"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/tulle-mesh/tulle/hack/image/pack"
)

// pushImage packs this program with a shell and iptables, and puts it into the lab's registry under a name that pods use with a host of their choice.
func pushImage(ctx context.Context, registry string) error {
	if err := pack.Missing(append(pack.BaseNeeds(), pack.IptablesNeeds()...)...); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	tree := pack.Base("smoke", 1337)
	tree.Copy("/usr/bin/smoke", self)
	tree.Iptables()
	tree.Shell()
	layer, err := tree.PlainLayer()
	if err != nil {
		return err
	}
	image, err := pack.Image(v1.Config{Entrypoint: []string{"/usr/bin/smoke"}, Env: []string{"PATH=/usr/sbin:/usr/bin"}}, layer)
	if err != nil {
		return err
	}
	tag, err := name.NewTag(registry+"/lab/smoke:1", name.Insecure)
	if err != nil {
		return err
	}
	return remote.Write(tag, image, remote.WithContext(ctx))
}
