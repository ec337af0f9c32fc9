// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// registryFolder is where the registry keeps its blobs, on the node.
const registryFolder = "/var/lib/containerd/registry"

// library is the folder that Docker adds to names that have none. The registry leaves it out, so that "hello-world" and "any.host/hello-world" are the same.
const library = "library/"

// newRegistry is the registry that stands for every other: it goes by the image's name behind the host, and never asks which host was meant.
func newRegistry() http.Handler {
	images := registry.New(registry.WithBlobHandler(registry.NewDiskBlobHandler(registryFolder)), registry.Logger(log.New(io.Discard, "", 0)))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if rest, found := strings.CutPrefix(r.URL.Path, "/v2/"+library); found {
			r.URL.Path = "/v2/" + rest
		}
		images.ServeHTTP(w, r)
	})
}

// push puts image archives into the registry. Each goes by the names in it without their host, or by the NAME:TAG behind "=".
func (l lab) push(ctx context.Context, out io.Writer, archives []string) error {
	if _, err := l.running(); err != nil {
		return err
	}
	for _, archive := range archives {
		file, as, _ := strings.Cut(archive, "=")
		image, err := tarball.ImageFromPath(file, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		names := []string{as}
		if as == "" {
			if names, err = namesIn(file); err != nil {
				return err
			}
		}
		for _, as := range names {
			if err := l.pushImage(ctx, as, image); err != nil {
				return err
			}
			if _, err := fmt.Fprintln(out, "pushed", as); err != nil {
				return err
			}
		}
	}
	return nil
}

// namesIn are the names that an archive gives its one image, without hosts.
func namesIn(file string) ([]string, error) {
	manifest, err := tarball.LoadManifest(func() (io.ReadCloser, error) { return os.Open(file) }) //nolint:gosec // the file that the user names
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var names []string
	for _, text := range manifest[0].RepoTags {
		tag, err := name.NewTag(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		names = append(names, strings.TrimPrefix(tag.RepositoryStr(), library)+":"+tag.TagStr())
	}
	if names == nil {
		return nil, fmt.Errorf("%s: its image has no name: push %s=NAME:TAG", file, file)
	}
	return names, nil
}

// pushImage puts one image into the registry as NAME:TAG.
func (l lab) pushImage(ctx context.Context, as string, image v1.Image) error {
	address, err := os.ReadFile(l.in("registry"))
	if err != nil {
		return err
	}
	tag, err := name.NewTag(string(address)+"/"+as, name.Insecure)
	if err != nil {
		return err
	}
	if err := remote.Write(tag, image, remote.WithContext(ctx)); err != nil {
		return fmt.Errorf("pushing %s: %w", as, err)
	}
	return nil
}
