// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package plane

import (
	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/store"
)

// Check looks at every object, makes the configuration of every virtual node and gateway as if a proxy of each were connected, and returns what was found on the way, sorted.
func Check(now *store.Snapshot) []mesh.Finding {
	var all []mesh.Finding
	sets := map[mesh.EndpointSetKey]bool{}
	for _, key := range now.Keys() {
		all = append(all, mesh.Check(now, key)...)
		if key.Kind != mesh.KindVirtualNode && key.Kind != mesh.KindVirtualGateway {
			continue
		}
		view, _, findings := mesh.ViewOf(now, key, mesh.Profile{})
		all = append(all, findings...)
		if view == nil {
			continue
		}
		_, findings = envoy.Build(view)
		all = append(all, attribute(now, key.Mesh, findings)...)
		for _, set := range view.EndpointSets() {
			if sets[set] {
				continue
			}
			sets[set] = true
			_, _, findings = mesh.EndpointSetOf(now, set)
			all = append(all, findings...)
		}
	}
	return mesh.SortFindings(all)
}
