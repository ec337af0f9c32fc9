// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package admission answers the API server about the custom resources: it fills in names and meshes, refuses what cannot
// hold with a message that says how to mend it, and converts between the API's versions. The control plane serves its
// Handler; Faults may be called by every input that has custom resources.
package admission

import (
	"cmp"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/tulle-mesh/tulle/internal/admission/review"
	"github.com/tulle-mesh/tulle/internal/clock"
)

// DefaultSettle is how long a request waits, at most, for the cache to see what the cluster was told a moment ago.
const DefaultSettle = time.Second

// Options are what admission needs from the control plane.
type Options struct {
	// Lookup answers questions about the cluster.
	Lookup Lookup
	// Logger gets a line for each refusal and each fault of the transport.
	Logger *slog.Logger
	// Clock times the waits.
	Clock clock.Clock
	// DefaultMesh is the Mesh of v1beta1 objects that name none; empty for none.
	DefaultMesh string
	// Settle is how long to wait for a mesh that is not in the cache yet; DefaultSettle when 0.
	Settle time.Duration
}

// ConvertPath is where conversion is served.
const ConvertPath = "/convert"

// MutatePath is where objects of a kind are defaulted.
func MutatePath(kind string) string {
	return "/mutate-appmesh-k8s-aws-v1beta2-" + strings.ToLower(kind)
}

// ValidatePath is where objects of a kind are checked.
func ValidatePath(kind string) string {
	return "/validate-appmesh-k8s-aws-v1beta2-" + strings.ToLower(kind)
}

// admitter decides on requests.
type admitter struct {
	Options

	server review.Server
}

// Handler serves MutatePath and ValidatePath of every kind, and ConvertPath.
func Handler(options Options) http.Handler {
	options.Settle = cmp.Or(options.Settle, DefaultSettle)
	a := &admitter{Options: options, server: review.Server{Logger: options.Logger}}
	mux := http.NewServeMux()
	for _, kind := range kinds() {
		mux.Handle("POST "+MutatePath(kind), a.serve(kind, a.mutate))
		mux.Handle("POST "+ValidatePath(kind), a.serve(kind, a.validate))
	}
	mux.HandleFunc("POST "+ConvertPath, a.serveConversion)
	return mux
}
