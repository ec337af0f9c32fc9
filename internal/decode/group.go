// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"fmt"
	"slices"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// everyService is the group name that stands for every VirtualService of a namespace.
const everyService = "*"

// addGroups adds the services of a node's backend groups to its backends. One that is a backend already stays as it is.
func (b *builder) addGroups(o *v1beta2.VirtualNode, out *mesh.VirtualNode) {
	had := map[string]struct{}{}
	for _, backend := range out.Spec.Backends {
		had[backend.VirtualService.VirtualServiceName] = struct{}{}
	}
	for i, group := range o.Spec.BackendGroups {
		for _, name := range b.groupServices(fmt.Sprintf("spec.backendGroups[%d]", i), group) {
			if _, ok := had[name]; ok {
				continue
			}
			had[name] = struct{}{}
			out.Spec.Backends = append(out.Spec.Backends, mesh.Backend{
				VirtualService: &mesh.VirtualServiceBackend{VirtualServiceName: name},
			})
		}
	}
}

// groupServices are the App Mesh names of the services of one group.
func (b *builder) groupServices(field string, ref v1beta2.BackendGroupReference) []string {
	namespace := nameOr(ref.Namespace, b.in.id.Namespace)
	if ref.Name == everyService {
		return b.servicesIn(namespace)
	}
	id := ID{Kind: kindBackendGroup, Namespace: namespace, Name: ref.Name}
	group, in := get[*v1beta2.BackendGroup](b.reader, id)
	if in == nil {
		b.add(problem{
			reason:  mesh.ReasonRefNotFound,
			field:   field + ".name",
			value:   ref.Name,
			message: fmt.Sprintf("there is no BackendGroup %q in namespace %q, whose services this node wants to call", ref.Name, namespace),
			mend:    "create the BackendGroup, or correct the name or namespace",
		})
		return nil
	}
	var names []string
	for _, service := range group.Spec.VirtualServices {
		// A service without a namespace is one of the node's namespace, not of the group's: groups are shared so.
		target := ID{Kind: kindVirtualService, Namespace: nameOr(service.Namespace, b.in.id.Namespace), Name: service.Name}
		if name, ok := b.resolveRef(field, target); ok {
			names = append(names, name)
		}
	}
	return names
}

// servicesIn are the App Mesh names of all services of a namespace that are in the node's mesh and in force.
func (b *builder) servicesIn(namespace string) []string {
	var names []string
	for _, id := range read[[]ID](b.reader, indexIn(kindVirtualService, namespace)) {
		target := identityOf(b.reader, id)
		if target != nil && target.mesh == b.self.mesh && holder(b.reader, target.key) == id {
			names = append(names, target.key.Name)
		}
	}
	slices.Sort(names)
	return names
}
