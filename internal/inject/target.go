// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// errNoCA says that the control plane has not made its certificates yet.
var errNoCA = errors.New("the control plane's certificate authority is not known yet")

// readTarget reads from the node or gateway what its pods' proxies need.
func (i *injector) readTarget(ctx context.Context, s *subject) error {
	key := client.ObjectKey{Namespace: s.member.ID.Namespace, Name: s.member.ID.Name}
	var spec any
	get := func(reader client.Reader) error {
		if s.member.Key.Kind == mesh.KindVirtualGateway {
			gateway := &v1beta2.VirtualGateway{}
			err := reader.Get(ctx, key, gateway)
			spec = &gateway.Spec
			return err
		}
		node := &v1beta2.VirtualNode{}
		err := reader.Get(ctx, key, node)
		spec = &node.Spec
		s.ports = nil
		for n := range node.Spec.Listeners {
			s.ports = append(s.ports, node.Spec.Listeners[n].PortMapping.Port)
		}
		return err
	}
	err := get(i.Cached)
	if apierrors.IsNotFound(err) {
		err = get(i.Live)
	}
	if err != nil {
		return fmt.Errorf("reading %s: %w", s.member, err)
	}
	s.usesSDS, err = usesSDS(spec)
	return err
}

// usesSDS says whether any certificate of a spec comes from a secret discovery service: the API has the field sds for nothing else.
func usesSDS(spec any) (bool, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return false, err
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil {
		return false, err
	}
	return holds(tree, "sds"), nil
}

func holds(tree any, field string) bool {
	switch t := tree.(type) {
	case map[string]any:
		for name, value := range t {
			if name == field && value != nil || holds(value, field) {
				return true
			}
		}
	case []any:
		for _, value := range t {
			if holds(value, field) {
				return true
			}
		}
	}
	return false
}
