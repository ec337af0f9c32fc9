// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package plane

import (
	"cmp"
	"strings"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// group is all proxies that get the same configuration: those of one virtual node or gateway with the same profile.
type group struct {
	name    string
	proxy   mesh.Key
	profile mesh.Profile
	// members counts the proxies that are connected.
	members int

	// view is nil while the node does not exist.
	view     *mesh.View
	reads    []mesh.Key
	findings []mesh.Finding
	// translation is the part of findings that comes from translating view.
	translation []mesh.Finding
	translator  envoy.Incremental
	// built is what translation made, encoded the same marshalled, with nil for what cannot be, and config what is delivered of it.
	built   envoy.Resources
	encoded xds.Config
	config  *xds.Config
	sets    []mesh.EndpointSetKey
	// offers are those of the node's backends, sorted.
	offers []*offer
}

// set is the endpoints of one listener of a node, kept while a group names it.
type set struct {
	key mesh.EndpointSetKey
	// users counts the groups that name the set.
	users    int
	reads    []mesh.Key
	findings []mesh.Finding
	resource *xds.Resource
}

// groupName is unique for a node and a profile.
func groupName(proxy mesh.Key, p mesh.Profile) string {
	var b strings.Builder
	b.WriteString(proxy.String())
	for _, bit := range []struct {
		on   bool
		name string
	}{{p.IPv6, "+ipv6"}, {p.MetricsExtension, "+metrics"}, {p.StockImage, "+stock"}} {
		if bit.on {
			b.WriteString(bit.name)
		}
	}
	return b.String()
}

func compareGroups(x, y *group) int { return cmp.Compare(x.name, y.name) }

func compareSets(x, y *set) int { return x.key.Compare(y.key) }
