// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"context"
	"fmt"
	"slices"
	"strings"

	admissionv1 "k8s.io/api/admission/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/admission/review"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// validate refuses what cannot hold: faults of the object itself, and changes of what does not change. What it refers to may
// come later.
func (a *admitter) validate(ctx context.Context, kind string, request *admissionv1.AdmissionRequest) (review.Verdict, error) {
	s, err := read(kind, request.Object.Raw)
	if err != nil {
		return review.Verdict{}, review.Refusef("this cannot be read as a %s: %v", kind, err)
	}
	s.locate(request.Namespace)
	if s.object.GetDeletionTimestamp() != nil {
		// Nothing stands in the way of an object that leaves.
		return review.Verdict{}, nil
	}
	var old *subject
	if request.Operation == admissionv1.Update {
		if old, err = read(kind, request.OldObject.Raw); err != nil {
			// What is stored cannot be read: anything that can is better.
			old = nil
		} else {
			old.locate(request.Namespace)
		}
	}
	if old != nil && apiequality.Semantic.DeepEqual(old.spec(), s.spec()) {
		// Only labels, annotations or finalizers change.
		return review.Verdict{}, nil
	}
	if err := unchanged(old, s); err != nil {
		return review.Verdict{}, err
	}
	version := request.Kind
	if request.RequestKind != nil {
		version = *request.RequestKind
	}
	apiVersion := v1beta2.Group + "/" + version.Version
	var known []mesh.Finding
	if old != nil {
		known = Faults(old.object, apiVersion, a.DefaultMesh)
	}
	out, err := judge(s, Faults(s.object, apiVersion, a.DefaultMesh), known)
	if err != nil {
		return review.Verdict{}, err
	}
	if request.Operation == admissionv1.Create {
		warning, err := a.conflict(ctx, s)
		if err != nil {
			return review.Verdict{}, err
		}
		out.Warnings = append(out.Warnings, warning...)
	}
	return out, nil
}

// judge refuses an object with faults. Those that the object had before are warnings, for a change for the better must be
// possible in small steps.
func judge(s *subject, faults, known []mesh.Finding) (review.Verdict, error) {
	var out review.Verdict
	var lines []string
	for _, fault := range faults {
		line := sentence(fault)
		was := slices.ContainsFunc(known, func(k mesh.Finding) bool {
			return k.Field == fault.Field && k.Value == fault.Value && k.Reason == fault.Reason
		})
		if fault.Severity == mesh.SeverityError && !was {
			lines = append(lines, line)
			continue
		}
		out.Warnings = append(out.Warnings, line)
	}
	const most = 10
	switch n := len(lines); {
	case n == 0:
		return out, nil
	case n == 1:
		return review.Verdict{}, review.Refusef("%s is not valid: %s", s, lines[0])
	case n > most:
		lines = append(lines[:most], fmt.Sprintf("and %d more", n-most))
	}
	return review.Verdict{}, review.Refusef("%s is not valid:\n- %s", s, strings.Join(lines, "\n- "))
}

// sentence is a finding in one line: the field, its value, what is wrong, and how to mend it.
func sentence(f mesh.Finding) string {
	line := f.Message
	if f.Field != "" && !strings.Contains(line, f.Field) {
		line = f.Field + ": " + line
	}
	if f.Value != "" && !strings.Contains(line, f.Value) {
		line += fmt.Sprintf(" (it is %q)", f.Value)
	}
	if f.Mend != "" {
		line += "; " + f.Mend
	}
	return line
}

// conflict warns of a name that another object has. The object is stored nevertheless and takes over when the other leaves.
func (a *admitter) conflict(ctx context.Context, s *subject) ([]string, error) {
	key, ok, err := a.key(ctx, s)
	if err != nil || !ok {
		return nil, err
	}
	holder, err := a.Lookup.Holder(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("looking up the name %s: %w", key, err)
	}
	self := s.object.GetName()
	if s.kind != kindMesh {
		self = s.object.GetNamespace() + "/" + self
	}
	if holder == "" || holder == self {
		return nil, nil
	}
	return []string{fmt.Sprintf("the App Mesh name %q of this %s belongs to %s; this object is stored, and not in force until that one is gone or renamed",
		key.Name, s.kind, holder)}, nil
}

// key is the object's name in the model, and false where it is not known yet.
func (a *admitter) key(ctx context.Context, s *subject) (mesh.Key, bool, error) {
	meshes, err := a.Lookup.Meshes(ctx)
	if err != nil {
		return mesh.Key{}, false, fmt.Errorf("listing meshes: %w", err)
	}
	var gateways []*v1beta2.VirtualGateway
	if s.gatewayRef != nil {
		if gateways, err = a.Lookup.Gateways(ctx); err != nil {
			return mesh.Key{}, false, fmt.Errorf("listing virtual gateways: %w", err)
		}
	}
	key, ok := s.key(meshes, gateways)
	return key, ok, nil
}

// key is the object's name in the model, given all meshes and gateways, and false where it is not known yet.
func (s *subject) key(meshes []*v1beta2.Mesh, gateways []*v1beta2.VirtualGateway) (mesh.Key, bool) {
	name := s.appMeshName()
	if name == "" {
		return mesh.Key{}, false
	}
	if s.kind == kindMesh {
		return mesh.MeshKey(name), true
	}
	key := mesh.Key{Kind: s.modelKind(), Mesh: meshName(meshes, s.mesh()), Name: name}
	if s.gatewayRef == nil || key.Mesh == "" {
		return key, key.Mesh != ""
	}
	ref := *s.gatewayRef
	if ref == nil {
		return mesh.Key{}, false
	}
	namespace := orElse(ref.Namespace, s.object.GetNamespace())
	for _, g := range gateways {
		if g.Namespace == namespace && g.Name == ref.Name {
			key.Parent = orElse(g.Spec.AWSName, g.Name+"_"+g.Namespace)
		}
	}
	return key, key.Parent != ""
}

// meshName is the App Mesh name of a Mesh object, that of the object where it does not exist.
func meshName(meshes []*v1beta2.Mesh, object string) string {
	for _, m := range meshes {
		if m.Name == object {
			return orElse(m.Spec.AWSName, m.Name)
		}
	}
	return object
}
