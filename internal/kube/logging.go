// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"log/slog"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// LogTo leads what the Kubernetes libraries say to logger. They keep one for the process: call it once, before New.
func LogTo(logger *slog.Logger) {
	l := logr.FromSlogHandler(logger.Handler())
	ctrl.SetLogger(l)
	klog.SetLogger(l)
}
