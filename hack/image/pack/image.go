// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package pack

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Image puts layers on top of each other, the lowest first, under a configuration (entrypoint, user, labels ...).
// The digest depends on nothing but what is given.
func Image(config v1.Config, layers ...v1.Layer) (v1.Image, error) {
	image, err := mutate.AppendLayers(empty.Image, layers...)
	if err != nil {
		return nil, fmt.Errorf("stacking layers: %w", err)
	}
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the image's configuration: %w", err)
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	if image, err = mutate.ConfigFile(image, file); err != nil {
		return nil, fmt.Errorf("setting the image's configuration: %w", err)
	}
	return image, nil
}

// Layer makes a compressed layer, to be stored and carried around.
func (t *Tree) Layer() (v1.Layer, error) {
	archive, err := t.archive()
	if err != nil {
		return nil, err
	}
	// The fastest level: Envoy is most of the bytes, and a better one takes ten times as long for a tenth less.
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil },
		tarball.WithCompressionLevel(gzip.BestSpeed), tarball.WithCompressedCaching)
	if err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	return layer, nil
}

// PlainLayer makes a layer that is not compressed, for a registry on this machine.
func (t *Tree) PlainLayer() (v1.Layer, error) {
	archive, err := t.archive()
	if err != nil {
		return nil, err
	}
	return static.NewLayer(archive, types.DockerUncompressedLayer), nil
}
