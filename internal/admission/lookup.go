// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"context"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Lookup answers what admission asks of the cluster, from a cache. What it returns must not be changed.
type Lookup interface {
	// Meshes lists all Meshes.
	Meshes(ctx context.Context) ([]*v1beta2.Mesh, error)
	// NamespaceLabels returns the labels of a Namespace, and false for one that is not known.
	NamespaceLabels(ctx context.Context, name string) (labels.Set, bool, error)
	// Gateways lists the VirtualGateways of all namespaces.
	Gateways(ctx context.Context) ([]*v1beta2.VirtualGateway, error)
	// Holder returns the object that has an App Mesh name, as namespace/name (name for a Mesh), and "" for a free one.
	Holder(ctx context.Context, key mesh.Key) (string, error)
}
