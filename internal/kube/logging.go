// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// configureLogging leads what the libraries say to our log, where it has the same form. The libraries keep one logger for the process.
func configureLogging(logger *slog.Logger) {
	l := logr.FromSlogHandler(logger.Handler())
	ctrl.SetLogger(l)
	klog.SetLogger(l)
}
