// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// The sizes of the greatest requests that are read, in bytes.
const (
	// maxBody is the API server's own limit on requests.
	maxBody = 3 << 20
	// maxConversion leaves room for lists, which are converted as a whole.
	maxConversion = 32 << 20
)

// refusal is why a request is denied, in the user's words.
type refusal struct{ message string }

func (r *refusal) Error() string { return r.message }

func refusef(format string, args ...any) error {
	return &refusal{message: fmt.Sprintf(format, args...)}
}

// verdict is what is decided on a request that is allowed.
type verdict struct {
	patch    []operation
	warnings []string
}

// operation is one step of a JSON patch (RFC 6902).
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

type decision func(ctx context.Context, kind string, request *admissionv1.AdmissionRequest) (verdict, error)

// serve answers the admission reviews of one kind.
func (a *admitter) serve(kind string, decide decision) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if !a.readBody(w, r, maxBody, review) {
			return
		}
		request := review.Request
		switch {
		case review.Kind != "AdmissionReview" || review.APIVersion != admissionv1.SchemeGroupVersion.String():
			a.badRequest(w, r, fmt.Sprintf("this is %s %s; want admission.k8s.io/v1 AdmissionReview", review.APIVersion, review.Kind))
			return
		case request == nil || request.UID == "":
			a.badRequest(w, r, "the review holds no request with a uid")
			return
		case request.Kind.Kind != kind || request.Kind.Version != "v1beta2":
			a.badRequest(w, r, fmt.Sprintf("the request is about %s %s; this path takes v1beta2 %s", request.Kind.Version, request.Kind.Kind, kind))
			return
		}
		review.Response = a.respond(r.Context(), kind, request, decide)
		review.Request = nil
		a.write(w, r, review)
	})
}

// respond turns a decision into the API server's form.
func (a *admitter) respond(ctx context.Context, kind string, request *admissionv1.AdmissionRequest, decide decision) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{UID: request.UID}
	out, err := verdict{}, error(nil)
	if relevant(request) {
		out, err = decide(ctx, kind, request)
	}
	if no, ok := errors.AsType[*refusal](err); ok {
		a.Logger.InfoContext(ctx, "request refused", "kind", kind, "namespace", request.Namespace, "name", request.Name,
			"operation", string(request.Operation), "user", request.UserInfo.Username, "why", no.message)
		response.Result = &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: no.message,
		}
		return response
	}
	if err == nil && len(out.patch) > 0 {
		response.Patch, err = json.Marshal(out.patch)
		response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	}
	if err != nil {
		a.Logger.ErrorContext(ctx, "request not decided", "kind", kind, "namespace", request.Namespace, "name", request.Name, "error", err)
		response.Patch, response.PatchType = nil, nil
		response.Result = &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
			Message: fmt.Sprintf("the mesh's control plane could not look at this request: %v; try again", err),
		}
		return response
	}
	response.Allowed = true
	response.Warnings = out.warnings
	return response
}

// relevant says whether a request can change what an object means: its creation, or an update of the object itself.
func relevant(request *admissionv1.AdmissionRequest) bool {
	return request.SubResource == "" &&
		(request.Operation == admissionv1.Create || request.Operation == admissionv1.Update)
}

// readBody reads a request's JSON of up to limit bytes into review, or answers why not.
func (a *admitter) readBody(w http.ResponseWriter, r *http.Request, limit int64, review any) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		a.Logger.WarnContext(r.Context(), "webhook call too large", "path", r.URL.Path, "limit", tooLarge.Limit)
		http.Error(w, fmt.Sprintf("the request is larger than %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		return false
	}
	if err == nil {
		err = json.Unmarshal(body, review)
	}
	if err != nil {
		a.badRequest(w, r, fmt.Sprintf("the request cannot be read: %v", err))
		return false
	}
	return true
}

func (a *admitter) badRequest(w http.ResponseWriter, r *http.Request, why string) {
	a.Logger.WarnContext(r.Context(), "webhook call not understood", "path", r.URL.Path, "why", why)
	http.Error(w, why, http.StatusBadRequest)
}

func (a *admitter) write(w http.ResponseWriter, r *http.Request, review any) {
	body, err := json.Marshal(review)
	if err != nil {
		a.Logger.ErrorContext(r.Context(), "answer cannot be written", "path", r.URL.Path, "error", err)
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(body); err != nil {
		a.Logger.WarnContext(r.Context(), "answer not sent", "path", r.URL.Path, "error", err)
	}
}
