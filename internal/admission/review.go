// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"context"
	"fmt"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"

	"github.com/tulle-mesh/tulle/internal/admission/review"
)

// maxConversion is the size of the greatest conversion review that is read, in bytes. It leaves room for lists, which are converted as a whole.
const maxConversion = 32 << 20

type decision func(ctx context.Context, kind string, request *admissionv1.AdmissionRequest) (review.Verdict, error)

// serve answers the admission reviews of one kind.
func (a *admitter) serve(kind string, decide decision) http.Handler {
	accepts := func(request *admissionv1.AdmissionRequest) string {
		if request.Kind.Kind != kind || request.Kind.Version != "v1beta2" {
			return fmt.Sprintf("the request is about %s %s; this path takes v1beta2 %s", request.Kind.Version, request.Kind.Kind, kind)
		}
		return ""
	}
	return a.server.Admission(accepts, func(ctx context.Context, request *admissionv1.AdmissionRequest) (review.Verdict, error) {
		if !relevant(request) {
			return review.Verdict{}, nil
		}
		return decide(ctx, kind, request)
	})
}

// relevant says whether a request can change what an object means: its creation, or an update of the object itself.
func relevant(request *admissionv1.AdmissionRequest) bool {
	return request.SubResource == "" &&
		(request.Operation == admissionv1.Create || request.Operation == admissionv1.Update)
}
