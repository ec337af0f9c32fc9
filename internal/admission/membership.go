// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/admission/review"
)

// poll is the time between two looks into the cache while waiting for it.
const poll = 50 * time.Millisecond

// joinMesh decides on the mesh of a new object.
func (a *admitter) joinMesh(ctx context.Context, s *subject) ([]string, error) {
	name := s.mesh()
	if s.legacy {
		name = cmp.Or(name, a.DefaultMesh)
	}
	if name != "" {
		return a.joinNamedMesh(ctx, s, name)
	}
	m, err := a.selectedMesh(ctx, s)
	if err != nil {
		return nil, err
	}
	if err := open(s, m); err != nil {
		return nil, err
	}
	*s.meshRef = &v1beta2.MeshReference{Name: m.Name, UID: m.UID}
	return nil, nil
}

// joinNamedMesh joins the mesh that the object names itself. It may come later in the same file.
func (a *admitter) joinNamedMesh(ctx context.Context, s *subject, name string) ([]string, error) {
	meshes, err := a.Lookup.Meshes(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing meshes: %w", err)
	}
	ref := v1beta2.MeshReference{Name: name}
	if *s.meshRef != nil {
		ref.UID = (*s.meshRef).UID
	}
	defer func() { *s.meshRef = &ref }()
	var warnings []string
	i := slices.IndexFunc(meshes, func(m *v1beta2.Mesh) bool { return m.Name == name })
	if i < 0 {
		ref.UID = ""
		warnings = append(warnings, fmt.Sprintf("%s: there is no Mesh %q yet; the object waits for it", s.meshField(), name))
		return warnings, nil
	}
	m := meshes[i]
	if err := open(s, m); err != nil {
		return nil, err
	}
	if !s.legacy && m.Spec.NamespaceSelector != nil {
		if err := a.admits(ctx, s, m); err != nil {
			return nil, err
		}
	}
	if ref.UID != "" && ref.UID != m.UID {
		warnings = append(warnings, fmt.Sprintf("spec.meshRef.uid: %s is not the Mesh %q of this cluster; its uid %s is set instead", ref.UID, name, m.UID))
	}
	if !s.legacy || ref.UID != "" {
		ref.UID = m.UID
	}
	return warnings, nil
}

// open refuses a mesh that is being deleted.
func open(s *subject, m *v1beta2.Mesh) error {
	if m.DeletionTimestamp == nil {
		return nil
	}
	return review.Refusef("%s cannot join the Mesh %q, which is being deleted (unable to create new content in mesh %s because it is being terminated): "+
		"wait until it is gone and create it again, or use another mesh", s, m.Name, m.Name)
}

// admits refuses a mesh that an object names and that does not take the objects of its namespace.
func (a *admitter) admits(ctx context.Context, s *subject, m *v1beta2.Mesh) error {
	namespace := s.object.GetNamespace()
	return a.settled(ctx, func() error {
		set, err := a.namespaceLabels(ctx, namespace)
		if err != nil {
			return err
		}
		if selects(m.Spec.NamespaceSelector, set) {
			return nil
		}
		return review.Refusef("%s names the Mesh %q in spec.meshRef, whose namespaceSelector (%s) does not match the namespace %q with labels %s: "+
			"give the namespace these labels, or leave spec.meshRef out", s, m.Name, metav1.FormatLabelSelector(m.Spec.NamespaceSelector), namespace, set)
	})
}

// selectedMesh is the one mesh whose namespaceSelector matches the object's namespace.
func (a *admitter) selectedMesh(ctx context.Context, s *subject) (*v1beta2.Mesh, error) {
	var found *v1beta2.Mesh
	err := a.settled(ctx, func() error {
		meshes, err := a.Lookup.Meshes(ctx)
		if err != nil {
			return fmt.Errorf("listing meshes: %w", err)
		}
		namespace := s.object.GetNamespace()
		set, err := a.namespaceLabels(ctx, namespace)
		if err != nil {
			return err
		}
		var matches []*v1beta2.Mesh
		for _, m := range meshes {
			if selects(m.Spec.NamespaceSelector, set) {
				matches = append(matches, m)
			}
		}
		if len(matches) != 1 {
			return noMesh(s, namespace, set, meshes, matches)
		}
		found = matches[0]
		return nil
	})
	return found, err
}

// noMesh says why an object has no mesh. The words "failed to find matching mesh" and "found multiple matching meshes" are
// those that scripts know.
func noMesh(s *subject, namespace string, set labels.Set, all, matches []*v1beta2.Mesh) error {
	if len(matches) > 1 {
		return review.Refusef("%s cannot be created: found multiple matching meshes for namespace: %s, expecting 1 but found %d: %s. "+
			"Narrow the namespaceSelector of all but one of them, or name one in spec.meshRef", s, namespace, len(matches), meshNames(matches))
	}
	why := fmt.Sprintf("%s cannot be created: failed to find matching mesh for namespace: %s, expecting 1 but found 0. ", s, namespace)
	if len(all) == 0 {
		return review.Refusef("%sThe cluster has no Mesh: create one whose namespaceSelector matches the labels of the namespace (%s)", why, set)
	}
	asks := make([]string, 0, len(all))
	for _, m := range all {
		ask := fmt.Sprintf("Mesh %q asks for %s", m.Name, metav1.FormatLabelSelector(m.Spec.NamespaceSelector))
		if m.Spec.NamespaceSelector == nil {
			ask = fmt.Sprintf("Mesh %q has no namespaceSelector and selects none", m.Name)
		}
		asks = append(asks, ask)
	}
	slices.Sort(asks)
	if more := len(asks) - 5; more > 0 {
		asks = append(asks[:5], fmt.Sprintf("and %d more", more))
	}
	return review.Refusef("%sThe namespace has the labels %s; %s. Label the namespace (kubectl label namespace %s KEY=VALUE), or name a mesh in spec.meshRef",
		why, set, strings.Join(asks, "; "), namespace)
}

func meshNames(meshes []*v1beta2.Mesh) string {
	names := make([]string, 0, len(meshes))
	for _, m := range meshes {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// settled tries until it holds, until what refuses it has had time to reach the cache, or until the caller gives up.
func (a *admitter) settled(ctx context.Context, try func() error) error {
	deadline := a.Clock.Now().Add(a.Settle)
	for {
		err := try()
		if err == nil || !a.Clock.Now().Before(deadline) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-a.Clock.After(poll):
		}
	}
}

// namespaceLabels are the labels of a namespace, with the one that every namespace has.
func (a *admitter) namespaceLabels(ctx context.Context, name string) (labels.Set, error) {
	found, _, err := a.Lookup.NamespaceLabels(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("reading namespace %s: %w", name, err)
	}
	set := maps.Clone(found)
	if set == nil {
		set = labels.Set{}
	}
	set[corev1.LabelMetadataName] = name
	return set, nil
}

// selects says whether a selector matches; an absent one matches nothing, and so does one at fault.
func selects(selector *metav1.LabelSelector, set labels.Set) bool {
	compiled, err := metav1.LabelSelectorAsSelector(selector)
	return err == nil && compiled.Matches(set)
}
