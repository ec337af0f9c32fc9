// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"log/slog"
	"net/http"

	"github.com/tulle-mesh/tulle/internal/admission"
	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/inject"
	"github.com/tulle-mesh/tulle/internal/kube"
)

// webhooks answers the API server: about the mesh's objects, and about pods. ca is what proxies trust the control plane by; nil where they need nothing.
func (o controllerOptions) webhooks(env Env, controller *kube.Controller, settings inject.Settings, ca func() []byte, logger *slog.Logger) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", admission.Handler(admission.Options{
		Lookup: admission.FromReader(controller.Reader()), Logger: logger, Clock: env.Clock, DefaultMesh: o.defaultMesh,
	}))
	mux.Handle(inject.Path, inject.Handler(inject.Options{
		Cached: controller.Reader(), Live: controller.Live(), Decode: decode.Options{DefaultMesh: o.defaultMesh}, Settings: settings, CABundle: ca,
		ServerVersion: serverVersion(controller.Clientset().Discovery()), Logger: logger, Clock: env.Clock,
	}))
	return mux
}
