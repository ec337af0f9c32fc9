// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"fmt"
	"strings"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/admission/review"
)

// change is a field that may not change, and does.
type change struct{ field, from, to string }

// unchanged refuses changes of what other objects and running proxies know an object by, and two meshes in one object. A
// nil old is a creation.
func unchanged(old, s *subject) error {
	if ref := s.meshRef; ref != nil && *ref != nil && s.meshName != "" && (*ref).Name != s.meshName {
		return review.Refusef("%s names two meshes: %q in spec.meshName and %q in spec.meshRef.name. An object stays in its mesh: "+
			"write the same name in both, or delete the object and create it in the other mesh", s, s.meshName, (*ref).Name)
	}
	if old == nil {
		return nil
	}
	changes := changesOf(old, s)
	if len(changes) == 0 {
		return nil
	}
	var fields, details []string
	for _, c := range changes {
		fields = append(fields, c.field)
		details = append(details, fmt.Sprintf("%s from %q to %q", c.field, c.from, c.to))
	}
	mend := "leave them as they are, or delete the object and create it anew"
	if s.legacy && !old.legacy {
		mend = "the object was made in v1beta2, and v1beta1 gives other names: write it in v1beta2, or delete it and create it anew"
	}
	return review.Refusef("%s update may not change these fields: %s. It would change %s: %s", s, strings.Join(fields, ","), strings.Join(details, ", "), mend)
}

func changesOf(old, s *subject) []change {
	var changes []change
	if was, is := old.appMeshName(), s.appMeshName(); was != is {
		changes = append(changes, change{"spec.awsName", was, is})
	}
	if was, is := old.mesh(), s.mesh(); was != "" && was != is {
		changes = append(changes, change{s.meshField(), was, is})
	}
	if s.gatewayRef != nil {
		was, is := *old.gatewayRef, *s.gatewayRef
		if was != nil && (is == nil || !s.sameGateway(was, is)) {
			changes = append(changes, change{"spec.virtualGatewayRef", s.gateway(was), s.gateway(is)})
		}
	}
	return append(changes, cloudMapChange(old, s)...)
}

func (s *subject) gateway(ref *v1beta2.VirtualGatewayReference) string {
	if ref == nil {
		return ""
	}
	return orElse(ref.Namespace, s.object.GetNamespace()) + "/" + ref.Name
}

// cloudMapChange compares a node's Cloud Map service, which stays once it is set. Nodes of v1beta1 could always change it.
func cloudMapChange(old, s *subject) []change {
	was, is := cloudMap(old), cloudMap(s)
	if was == "" || was == is || s.legacy {
		return nil
	}
	return []change{{"spec.serviceDiscovery.awsCloudMap", was, is}}
}

// cloudMap writes a node's Cloud Map service as text, empty for none. The order of the attributes means nothing.
func cloudMap(s *subject) string {
	node, ok := s.object.(*v1beta2.VirtualNode)
	if !ok || node.Spec.ServiceDiscovery == nil || node.Spec.ServiceDiscovery.AWSCloudMap == nil {
		return ""
	}
	service := node.Spec.ServiceDiscovery.AWSCloudMap
	attributes := map[string]string{}
	for _, attribute := range service.Attributes {
		attributes[attribute.Key] = attribute.Value
	}
	text := service.ServiceName + "." + service.NamespaceName
	if len(attributes) > 0 {
		// fmt writes maps in the order of their keys.
		text += " " + strings.TrimPrefix(fmt.Sprint(attributes), "map")
	}
	return text
}
