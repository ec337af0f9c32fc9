// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package plane

import (
	"fmt"

	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/xds"
)

// Refusals returns a finding for each object from which something was built that a connected proxy refuses now, sorted.
func (p *Plane) Refusals(proxies []xds.ProxyStatus) []mesh.Finding {
	now := p.opts.Store.Snapshot()
	var all []mesh.Finding
	for _, proxy := range proxies {
		for _, t := range proxy.Types {
			for _, r := range t.Resources {
				origin, ok := r.Origin.(Origin)
				if r.Refused == "" || !ok {
					continue
				}
				all = append(all, refusals(now, proxy, r, origin)...)
			}
		}
	}
	return mesh.SortFindings(all)
}

func refusals(now mesh.Reader, proxy xds.ProxyStatus, r xds.ResourceStatus, origin Origin) []mesh.Finding {
	list := make([]mesh.Finding, 0, len(origin))
	for _, key := range origin {
		o := now.Get(key)
		if o == nil {
			continue
		}
		list = append(list, mesh.Finding{
			Severity: mesh.SeverityError, Reason: mesh.ReasonRejected, Object: o.From(),
			Message: fmt.Sprintf("Envoy of %s refuses %s, which is built from this object: %s", proxy.Proxy.NodeID, r.Name, r.Refused),
			Mend:    "the proxy keeps its last good configuration; change the field that Envoy names",
		})
	}
	return list
}
