// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Command image builds the container images of tulle and tulle-agent as archives that "docker load" and the lab take, without Docker and without root.
// The same files in give the same bytes out. "make image" calls it.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/tulle-mesh/tulle/hack/image/pack"
)

// inputs are what the images are made from.
type inputs struct {
	bin        string
	envoy      string
	version    string
	repository string
	out        string
}

func main() {
	var in inputs
	flag.StringVar(&in.bin, "bin", "bin", "folder that holds tulle and tulle-agent")
	flag.StringVar(&in.envoy, "envoy", "", "Envoy's binary")
	flag.StringVar(&in.version, "version", "", "the images' tag")
	flag.StringVar(&in.repository, "repository", "ghcr.io/tulle-mesh", "registry and folder that the images are named after")
	flag.StringVar(&in.out, "out", "dist", "folder for the archives")
	flag.Parse()
	if err := in.build(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// build writes an archive for each image and a line about it.
func (in inputs) build(report io.Writer) error {
	if in.envoy == "" || in.version == "" {
		return errors.New("-envoy and -version must be given; 'make image' does so")
	}
	if err := pack.Missing(append(pack.BaseNeeds(), agentNeeds()...)...); err != nil {
		return err
	}
	for _, program := range []string{in.program("tulle"), in.program("tulle-agent"), in.envoy} {
		if _, err := os.Stat(program); err != nil {
			return fmt.Errorf("%w: run 'make build', or point -bin and -envoy at the programs", err)
		}
	}
	if err := os.MkdirAll(in.out, 0o750); err != nil {
		return err
	}
	for _, image := range []struct {
		name string
		make func(inputs) (v1.Image, error)
	}{{"tulle", tulle}, {"tulle-agent", agent}} {
		made, err := image.make(in)
		if err != nil {
			return fmt.Errorf("%s: %w", image.name, err)
		}
		if err := in.store(report, image.name, made); err != nil {
			return fmt.Errorf("%s: %w", image.name, err)
		}
	}
	return nil
}

func (in inputs) program(name string) string { return filepath.Join(in.bin, name) }

// store writes an image to a file of its own in the output folder. A reader never sees half of it.
func (in inputs) store(report io.Writer, title string, image v1.Image) error {
	tag, err := name.NewTag(in.repository + "/" + title + ":" + in.version)
	if err != nil {
		return fmt.Errorf("-repository and -version make no image name: %w", err)
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	file := filepath.Join(in.out, title+".tar")
	if err := tarball.WriteToFile(file+".part", tag, image); err != nil {
		return err
	}
	if err := os.Rename(file+".part", file); err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(report, "%s  %s  %.1f MB  %s\n", file, tag, float64(info.Size())/1e6, digest)
	return err
}

// labels are what registries and scanners show.
func (in inputs) labels(title string) map[string]string {
	return map[string]string{
		"org.opencontainers.image.title":    title,
		"org.opencontainers.image.version":  in.version,
		"org.opencontainers.image.source":   "https://github.com/tulle-mesh/tulle",
		"org.opencontainers.image.licenses": "Apache-2.0",
	}
}
