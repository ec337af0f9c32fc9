// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/admission/review"
)

// mode says whether a pod is to have a proxy.
type mode int

const (
	// modeUnspecified gives a proxy to pods that belong to something, and lets others be.
	modeUnspecified mode = iota
	modeEnabled
	modeDisabled
)

func parseMode(text string) mode {
	switch strings.ToLower(strings.TrimSpace(text)) {
	case "enabled":
		return modeEnabled
	case "disabled":
		return modeDisabled
	}
	return modeUnspecified
}

// annotatedMode is what the pod itself asks for.
func (s *subject) annotatedMode() mode { return parseMode(s.pod.Annotations[annotationInject]) }

// mode is the pod's own where it has one, else its namespace's. A label that the cache does not show yet is asked for again: a pod of a namespace that was
// labelled a moment ago must not start bare.
func (i *injector) mode(ctx context.Context, s *subject) (mode, error) {
	if own := s.annotatedMode(); own != modeUnspecified {
		return own, nil
	}
	for _, reader := range []client.Reader{i.Cached, i.Live} {
		namespace := &corev1.Namespace{}
		err := reader.Get(ctx, client.ObjectKey{Name: s.pod.Namespace}, namespace)
		if err != nil && !apierrors.IsNotFound(err) {
			return modeUnspecified, fmt.Errorf("reading namespace %s: %w", s.pod.Namespace, err)
		}
		if mode := parseMode(namespace.Labels[annotationInject]); mode != modeUnspecified {
			return mode, nil
		}
	}
	return modeUnspecified, nil
}

// unsuited is why a pod cannot have a proxy at all; empty for one that can.
func (s *subject) unsuited() string {
	switch {
	case s.pod.Spec.HostNetwork:
		return "it uses the network of its host (spec.hostNetwork), where redirecting its traffic would redirect that of the whole machine"
	case s.pod.Spec.OS != nil && s.pod.Spec.OS.Name == corev1.Windows:
		return "it runs on Windows (spec.os), for which there is no proxy"
	}
	return ""
}

// without lets a pod start without a proxy where nothing asks for one, and refuses it where something does.
func (s *subject) without(mode mode, why string) (review.Verdict, error) {
	if mode == modeEnabled {
		return review.Verdict{}, review.Refusef("%s cannot have a proxy: %s. %s", s, why, s.optOut())
	}
	return review.Verdict{Warnings: []string{fmt.Sprintf("%s has no proxy: %s", s, why)}}, nil
}

// optOut says how to let a pod start without a proxy.
func (s *subject) optOut() string {
	return fmt.Sprintf("If it shall start without one, give the pod template the annotation %s: disabled", annotationInject)
}
