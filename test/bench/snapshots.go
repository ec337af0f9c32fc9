// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/envoyproxy/go-control-plane/pkg/cache/types"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	"google.golang.org/protobuf/proto"
)

// snapshots is the usual way to serve xDS in Go: go-control-plane's SnapshotCache with a snapshot for each node, all built again on a change. The
// messages themselves are decoded once and shared, which is kinder than a control plane that translates for each node.
type snapshots struct {
	scope    *scope
	cache    cachev3.SnapshotCache
	version  int
	messages map[string]proto.Message // by key
}

func newSnapshots(ctx context.Context, s *scope) (*snapshots, error) {
	b := &snapshots{scope: s, cache: cachev3.NewSnapshotCache(true, cachev3.IDHash{}, nil), messages: map[string]proto.Message{}}
	for key := range s.Resources {
		m, err := s.decode(key)
		if err != nil {
			return nil, err
		}
		b.messages[key] = m
	}
	return b, b.build(ctx)
}

// apply makes a change and builds the snapshots of all nodes.
func (b *snapshots) apply(ctx context.Context, command string) error {
	changed, err := b.scope.edit(command)
	if err != nil {
		return err
	}
	maps.Copy(b.messages, changed)
	return b.build(ctx)
}

func (b *snapshots) build(ctx context.Context) error {
	b.version++
	for node, keys := range b.scope.Clients {
		resources := map[string][]types.Resource{}
		seen := map[string]bool{}
		for _, key := range keys {
			if seen[key] {
				continue
			}
			seen[key] = true
			typ, _, _ := strings.Cut(key, " ")
			resources[typ] = append(resources[typ], b.messages[key])
		}
		s, err := cachev3.NewSnapshot(strconv.Itoa(b.version), resources)
		if err != nil {
			return fmt.Errorf("snapshot of %s: %w", node, err)
		}
		if err := b.cache.SetSnapshot(ctx, node, s); err != nil {
			return fmt.Errorf("snapshot of %s: %w", node, err)
		}
	}
	return nil
}
