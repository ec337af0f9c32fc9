// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import "github.com/tulle-mesh/tulle/internal/mesh"

// Build translates a View. It never fails: what cannot be translated is left out on the safe side (503 rather than another destination), with a finding.
//
// A finding's Object names the model's object by Kind and App Mesh name, a route's virtual router as its Namespace; the caller knows which custom resource it came from.
func Build(v *mesh.View) (Resources, []mesh.Finding) {
	_ = v
	return Resources{}, nil
}
