// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package plane

import (
	"maps"
	"weak"

	"github.com/tulle-mesh/tulle/internal/envoy"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// encodings finds the marshalled form of resources that several groups have, which are the clusters that translation shares. It keeps no marshalled form alive.
type encodings struct {
	of map[*envoy.Resource]weak.Pointer[xds.Resource]
	// full is the number of entries at which those that nobody has any more are dropped.
	full int
}

// get returns the marshalled form of r.
func (e *encodings) get(typeURL string, r *envoy.Resource) (*xds.Resource, error) {
	if typeURL != xds.ClusterType {
		return encode(typeURL, r)
	}
	if known := e.of[r].Value(); known != nil {
		return known, nil
	}
	made, err := encode(typeURL, r)
	if err != nil {
		return nil, err
	}
	if len(e.of) >= e.full {
		maps.DeleteFunc(e.of, func(_ *envoy.Resource, w weak.Pointer[xds.Resource]) bool { return w.Value() == nil })
		e.full = max(2*len(e.of), 64)
	}
	e.of[r] = weak.Make(made)
	return made, nil
}

func encode(typeURL string, r *envoy.Resource) (*xds.Resource, error) {
	pieces, err := r.Encode()
	if err != nil {
		return nil, err
	}
	return xds.NewEncoded(typeURL, r.Name, xds.Traits{Endpoints: r.Endpoints, Warms: r.Warms, Needs: r.Needs, Origin: Origin(r.Origins)}, pieces...)
}
