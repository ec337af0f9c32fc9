// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package review speaks the API server's webhook protocol: it reads reviews within a limit, has them decided, and answers. The handlers of webhooks call it;
// what is decided is theirs.
package review

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/json"
)

// MaxBody is the size of the greatest admission review that is read, in bytes: the API server's own limit on requests.
const MaxBody = 3 << 20

// refusal is why a request is denied, in the user's words.
type refusal struct{ message string }

func (r *refusal) Error() string { return r.message }

// Refusef returns the error with which a Decision denies a request. Any other error means that it could not be decided.
func Refusef(format string, args ...any) error {
	return &refusal{message: fmt.Sprintf(format, args...)}
}

// Verdict is what is decided on a request that is allowed.
type Verdict struct {
	Patch    []Operation
	Warnings []string
}

// Operation is one step of a JSON patch (RFC 6902).
type Operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value,omitempty"`
}

// Decision decides on a request.
type Decision func(context.Context, *admissionv1.AdmissionRequest) (Verdict, error)

// Server answers reviews, and logs what it refuses.
type Server struct{ Logger *slog.Logger }

// Admission answers admission reviews. accepts says what is wrong with a request that does not belong here, and nothing for one that does.
func (s Server) Admission(accepts func(*admissionv1.AdmissionRequest) string, decide Decision) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		review := &admissionv1.AdmissionReview{}
		if !s.Read(w, r, MaxBody, review) {
			return
		}
		request := review.Request
		switch {
		case review.Kind != "AdmissionReview" || review.APIVersion != admissionv1.SchemeGroupVersion.String():
			s.BadRequest(w, r, fmt.Sprintf("this is %s %s; want admission.k8s.io/v1 AdmissionReview", review.APIVersion, review.Kind))
			return
		case request == nil || request.UID == "":
			s.BadRequest(w, r, "the review holds no request with a uid")
			return
		}
		if why := accepts(request); why != "" {
			s.BadRequest(w, r, why)
			return
		}
		review.Response = s.respond(r.Context(), request, decide)
		review.Request = nil
		s.Write(w, r, review)
	})
}

// respond turns a decision into the API server's form.
func (s Server) respond(ctx context.Context, request *admissionv1.AdmissionRequest, decide Decision) *admissionv1.AdmissionResponse {
	response := &admissionv1.AdmissionResponse{UID: request.UID}
	out, err := decide(ctx, request)
	if no, ok := errors.AsType[*refusal](err); ok {
		s.Logger.InfoContext(ctx, "request refused", "kind", request.Kind.Kind, "namespace", request.Namespace, "name", request.Name,
			"operation", string(request.Operation), "user", request.UserInfo.Username, "why", no.message)
		response.Result = &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: no.message,
		}
		return response
	}
	if err == nil && len(out.Patch) > 0 {
		response.Patch, err = json.Marshal(out.Patch)
		response.PatchType = new(admissionv1.PatchTypeJSONPatch)
	}
	if err != nil {
		s.Logger.ErrorContext(ctx, "request not decided", "kind", request.Kind.Kind, "namespace", request.Namespace, "name", request.Name, "error", err)
		response.Patch, response.PatchType = nil, nil
		response.Result = &metav1.Status{
			Status: metav1.StatusFailure, Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError,
			Message: fmt.Sprintf("the mesh's control plane could not look at this request: %v; try again", err),
		}
		return response
	}
	response.Allowed = true
	response.Warnings = out.Warnings
	return response
}

// Read reads a request's JSON of up to limit bytes into review, or answers why not.
func (s Server) Read(w http.ResponseWriter, r *http.Request, limit int64, review any) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, limit))
	if tooLarge, ok := errors.AsType[*http.MaxBytesError](err); ok {
		s.Logger.WarnContext(r.Context(), "webhook call too large", "path", r.URL.Path, "limit", tooLarge.Limit)
		http.Error(w, fmt.Sprintf("the request is larger than %d bytes", tooLarge.Limit), http.StatusRequestEntityTooLarge)
		return false
	}
	if err == nil {
		err = json.Unmarshal(body, review)
	}
	if err != nil {
		s.BadRequest(w, r, fmt.Sprintf("the request cannot be read: %v", err))
		return false
	}
	return true
}

// BadRequest answers a call that cannot be understood, and logs why.
func (s Server) BadRequest(w http.ResponseWriter, r *http.Request, why string) {
	s.Logger.WarnContext(r.Context(), "webhook call not understood", "path", r.URL.Path, "why", why)
	http.Error(w, why, http.StatusBadRequest)
}

// Write sends a review back.
func (s Server) Write(w http.ResponseWriter, r *http.Request, review any) {
	body, err := json.Marshal(review)
	if err != nil {
		s.Logger.ErrorContext(r.Context(), "answer cannot be written", "path", r.URL.Path, "error", err)
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if _, err := w.Write(body); err != nil {
		s.Logger.WarnContext(r.Context(), "answer not sent", "path", r.URL.Path, "error", err)
	}
}
