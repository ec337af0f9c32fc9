// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package inject puts the proxy into pods as they are created: the webhook's handler and one small mutator for each concern. The control plane and the
// stand-alone injector serve its Handler; what a pod belongs to is decode's to say.
package inject

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/admission/review"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/decode"
)

// Path is where pods are mutated.
const Path = "/mutate-v1-pod"

// DefaultSettle is how long a pod that belongs to nothing waits, at most, for the cache to see what the cluster was told a moment ago.
const DefaultSettle = time.Second

// Options are what the webhook is made from.
type Options struct {
	// Cached reads Namespaces, VirtualNodes, VirtualGateways and Meshes from a cache, and Live the same from the API server, before a pod is refused.
	Cached, Live client.Reader
	// Decode is how the control plane reads the same objects.
	Decode   decode.Options
	Settings Settings
	// CABundle is the PEM of the roots that the proxy trusts for its connection to the control plane; nil where it needs none.
	CABundle func() []byte
	// ServerVersion is the API server's, such as v1.37.2.
	ServerVersion func(context.Context) (string, error)
	Logger        *slog.Logger
	// Clock times the waits.
	Clock clock.Clock
	// Settle is how long to wait for a node or gateway that is not in the cache yet; DefaultSettle when 0.
	Settle time.Duration
}

// injector decides on pods.
type injector struct{ Options }

// Handler serves the webhook of pods, on whatever path it is put. The settings must be valid.
func Handler(options Options) http.Handler {
	options.Settle = cmp.Or(options.Settle, DefaultSettle)
	i := &injector{Options: options}
	accepts := func(request *admissionv1.AdmissionRequest) string {
		if request.Kind.Kind != "Pod" || request.Kind.Group != "" || request.Kind.Version != "v1" {
			return fmt.Sprintf("the request is about %s %s; this path takes v1 Pod", request.Kind.Version, request.Kind.Kind)
		}
		return ""
	}
	mux := http.NewServeMux()
	mux.Handle("POST /", review.Server{Logger: options.Logger}.Admission(accepts, i.decide))
	return mux
}

// decide says what becomes of a pod.
func (i *injector) decide(ctx context.Context, request *admissionv1.AdmissionRequest) (review.Verdict, error) {
	if request.Operation != admissionv1.Create || request.SubResource != "" {
		return review.Verdict{}, nil
	}
	s, err := read(request.Object.Raw, request.Namespace)
	if err != nil {
		return review.Verdict{}, review.Refusef("this cannot be read as a Pod: %v", err)
	}
	if s.annotatedMode() == modeDisabled || s.done() {
		return review.Verdict{}, nil
	}
	mode, err := i.mode(ctx, s)
	if err != nil || mode == modeDisabled {
		return review.Verdict{}, err
	}
	if why := s.unsuited(); why != "" {
		return s.without(mode, why)
	}
	b, err := i.settle(ctx, s)
	if err != nil {
		return review.Verdict{}, err
	}
	member, verdict, err := b.one(s, mode)
	if err != nil || member == nil {
		return verdict, err
	}
	if err := i.prepare(ctx, s, *member); err != nil {
		return review.Verdict{}, err
	}
	if err := s.mutate(); err != nil {
		return review.Verdict{}, err
	}
	return review.Verdict{Patch: s.doc.operations, Warnings: s.notices()}, nil
}

// prepare gathers what the mutators need to know.
func (i *injector) prepare(ctx context.Context, s *subject, member decode.Member) error {
	s.settings, s.member = &i.Settings, member
	var err error
	if s.serverVersion, err = i.ServerVersion(ctx); err != nil {
		return fmt.Errorf("asking the API server for its version: %w", err)
	}
	if i.CABundle != nil {
		if s.ca = string(i.CABundle()); s.ca == "" {
			return errNoCA
		}
	}
	return i.readTarget(ctx, s)
}
