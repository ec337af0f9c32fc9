// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package plane

import "github.com/tulle-mesh/tulle/internal/mesh"

// attribute turns the model objects that translation names in its findings into the manifests that they come from.
// Translation knows App Mesh names alone: a kind, a name, and for a route its virtual router in place of the namespace.
func attribute(now mesh.Reader, meshName string, findings []mesh.Finding) []mesh.Finding {
	for i, f := range findings {
		key := mesh.Key{Kind: mesh.Kind(f.Object.Kind), Mesh: meshName, Parent: f.Object.Namespace, Name: f.Object.Name}
		if o := now.Get(key); o != nil {
			findings[i].Object = o.From()
		}
	}
	return findings
}
