// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"net/netip"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// StaticOptions are the parts of a static bootstrap that a View does not hold. The zero value is ready to use.
type StaticOptions struct {
	// Admin is where Envoy's admin interface listens; the zero value is 127.0.0.1:9901.
	Admin netip.AddrPort
}

// Static makes one whole bootstrap with everything inline, which Envoy runs with no control plane: routes stand in their listeners, endpoint sets in their clusters.
// A cluster whose set is missing or empty asks DNS for the node's hostname instead, where it has one.
func Static(v *mesh.View, sets []*mesh.EndpointSet, opts StaticOptions) (*bootstrapv3.Bootstrap, []mesh.Finding) {
	_, _, _ = v, sets, opts
	return &bootstrapv3.Bootstrap{}, nil
}
