// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"context"
	"fmt"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/admission/review"
)

// mutate fills in what an object leaves open: on creation its App Mesh name, its mesh and its gateway; on an update what it
// had already, for a manifest that is written again does not hold them.
func (a *admitter) mutate(ctx context.Context, kind string, request *admissionv1.AdmissionRequest) (review.Verdict, error) {
	s, err := read(kind, request.Object.Raw)
	if err != nil {
		// The API server checks the object against its schema next, and knows better what to say.
		return review.Verdict{}, nil //nolint:nilerr // the fault is the schema's to report
	}
	s.locate(request.Namespace)
	if s.object.GetDeletionTimestamp() != nil {
		return review.Verdict{}, nil
	}
	before, err := read(kind, request.Object.Raw)
	if err != nil {
		return review.Verdict{}, fmt.Errorf("reading the object again: %w", err)
	}
	var warnings []string
	if request.Operation == admissionv1.Update {
		s.keep(kind, request.OldObject.Raw)
	} else {
		warnings, err = a.complete(ctx, s)
	}
	if err != nil {
		return review.Verdict{}, err
	}
	patch, err := difference(request.Object.Raw, before, s)
	return review.Verdict{Patch: patch, Warnings: warnings}, err
}

// complete fills in a new object.
func (a *admitter) complete(ctx context.Context, s *subject) ([]string, error) {
	if s.awsName != nil && valueOf(*s.awsName) == "" {
		if name := s.defaultName(); name != "" {
			*s.awsName = new(name)
		}
	}
	if s.meshRef == nil {
		return nil, nil
	}
	warnings, err := a.joinMesh(ctx, s)
	if err != nil || s.gatewayRef == nil {
		return warnings, err
	}
	more, err := a.joinGateway(ctx, s)
	return append(warnings, more...), err
}

// keep takes from the object before an update what the new one leaves out. What is stored and cannot be read has nothing to
// give.
func (s *subject) keep(kind string, raw []byte) {
	old, err := read(kind, raw)
	if err != nil {
		return
	}
	if s.awsName != nil && valueOf(*s.awsName) == "" && *old.awsName != nil {
		*s.awsName = *old.awsName
	}
	if s.meshRef != nil {
		s.keepMesh(old)
	}
	if s.gatewayRef != nil {
		s.keepGateway(*old.gatewayRef)
	}
}

func (s *subject) keepMesh(old *subject) {
	was := *old.meshRef
	switch ref := *s.meshRef; {
	case was == nil:
	case ref == nil:
		if s.meshName == "" || s.meshName == was.Name {
			*s.meshRef = was
		}
	case ref.Name == was.Name && ref.UID == "":
		*s.meshRef = was
	}
}

func (s *subject) keepGateway(was *v1beta2.VirtualGatewayReference) {
	ref := *s.gatewayRef
	if was == nil {
		return
	}
	if ref == nil || ref.UID == "" && s.sameGateway(ref, was) {
		*s.gatewayRef = was
	}
}

// sameGateway says whether two references of one route mean one gateway.
func (s *subject) sameGateway(a, b *v1beta2.VirtualGatewayReference) bool {
	own := s.object.GetNamespace()
	return a.Name == b.Name && orElse(a.Namespace, own) == orElse(b.Namespace, own)
}

func orElse(value *string, otherwise string) string {
	if valueOf(value) == "" {
		return otherwise
	}
	return *value
}
