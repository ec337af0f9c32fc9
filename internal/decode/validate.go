// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/tulle-mesh/tulle/api/v1beta1"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// keep notes which entries of a list were decoded, by their places in the custom resource, for those whose reference
// leads nowhere are left out.
func (b *builder) keep(list string, index int) {
	if b.kept == nil {
		b.kept = map[string][]int{}
	}
	b.kept[list] = append(b.kept[list], index)
}

// validate holds the objects against the limits of the API, and names the fields as the custom resource has them.
func (b *builder) validate(objects []mesh.Object) {
	for _, object := range objects {
		for _, f := range mesh.Validate(object) {
			field, ok := b.fieldOf(object, f)
			if !ok {
				continue
			}
			if rest, cut := strings.CutPrefix(f.Message, f.Field+" "); cut {
				f.Message = field + " " + rest
			}
			f.Field = field
			b.list = append(b.list, f)
		}
	}
}

// fieldOf translates the path of a field from the API's form to the custom resource's. It says false for a fault that is
// reported elsewhere already: names that come from another object, and what a reference to nothing has left behind.
func (b *builder) fieldOf(object mesh.Object, f mesh.Finding) (string, bool) {
	field := f.Field
	if !strings.HasPrefix(field, "spec") {
		return b.nameOf(object, field)
	}
	if f.Reason == mesh.ReasonInvalid && isReference(field) {
		return "", false
	}
	switch object.(type) {
	case *mesh.Mesh:
		return strings.Replace(field, "spec.serviceDiscovery", "spec.meshServiceDiscovery", 1), true
	case *mesh.VirtualRouter:
		if b.in.id.Kind == kindVirtualService {
			field = strings.Replace(field, "spec.listeners", "spec.virtualRouter.listeners", 1)
		}
		return field, true
	case *mesh.Route:
		if b.in.id.Kind == kindVirtualService {
			field = legacyRouteField(field)
		}
	}
	field, ok := b.original(field)
	return b.spelled(field), ok
}

// nameOf is where the name or the owner of a model object was written.
func (b *builder) nameOf(object mesh.Object, field string) (string, bool) {
	switch o := object.(type) {
	case *mesh.Mesh:
		if field == "meshOwner" {
			return "spec.meshOwner", true
		}
		return b.nameField(), true
	case *mesh.Route:
		return fmt.Sprintf("spec.routes[%d].name", o.Position), field == "routeName"
	case *mesh.VirtualRouter:
		if b.in.id.Kind == kindVirtualService {
			return "spec.virtualRouter.name", field == "virtualRouterName"
		}
	}
	return b.nameField(), field != "meshName" && field != "meshOwner" && field != "virtualGatewayName" ||
		b.in.id.Kind == kindVirtualGateway && field == "virtualGatewayName"
}

// original puts the places of list entries back to those in the custom resource.
func (b *builder) original(field string) (string, bool) {
	for at, char := range field {
		if char != '[' {
			continue
		}
		list := field[:at]
		places, ok := b.kept[list]
		if !ok {
			continue
		}
		number, after, _ := strings.Cut(field[at+1:], "]")
		if i, err := strconv.Atoi(number); err == nil && i < len(places) {
			return fmt.Sprintf("%s[%d]%s", list, places[i], after), true
		}
		// The entry comes from a backend group, whose services are held to account themselves.
		return "", false
	}
	_, empty := b.emptied[field]
	return field, !empty
}

// empty notes a list of which no entry is left.
func (b *builder) empty(list string) {
	if b.emptied == nil {
		b.emptied = map[string]struct{}{}
	}
	b.emptied[list] = struct{}{}
}

// spelled replaces the names that the API spells in another way than the version in which the object was written.
func (b *builder) spelled(field string) string {
	if strings.HasSuffix(b.source.APIVersion, "/"+v1beta1.Version) {
		field = strings.NewReplacer("dns.hostname", "dns.hostName", "awsCloudMap", "cloudMap").Replace(field)
	} else {
		field = strings.NewReplacer("certificateArn", "certificateARN", "certificateAuthorityArns", "certificateAuthorityARNs").Replace(field)
	}
	if strings.HasSuffix(field, ".virtualServiceName") && !b.self.legacy {
		field = strings.TrimSuffix(field, "Name") + "Ref"
	}
	return field
}

// isReference says whether a field of the API names another object. Such a name was found by a reference, so that its
// faults are the other object's; a name that is empty was not found.
func isReference(field string) bool {
	for _, name := range []string{".virtualNode", ".virtualNodeName", ".virtualServiceName", ".virtualRouterName"} {
		if strings.HasSuffix(field, name) && field != "spec.provider"+name {
			return true
		}
	}
	return false
}

func legacyRouteField(field string) string {
	return strings.NewReplacer(
		".httpRoute", ".http", ".http2Route", ".http2", ".grpcRoute", ".grpc", ".tcpRoute", ".tcp",
		".perRetryTimeout", ".perRetryTimeoutMillis",
	).Replace(field)
}
