// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// component is who events say that they come from.
const component = "appmesh-controller"

// startEvents makes the recorder; the returned function ends it.
func (r *reporter) startEvents() func() {
	broadcaster := record.NewBroadcaster()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: r.sink})
	r.events = broadcaster.NewRecorder(r.client.Scheme(), corev1.EventSource{Component: component})
	return broadcaster.Shutdown
}

// announce makes an event of each condition that became False or whose reason changed, and one of a recovery.
func (r *reporter) announce(before, after client.Object) {
	old, _ := statusOf(before)
	now, ok := statusOf(after)
	if !ok {
		return
	}
	if failing(*old.conditions) && !failing(*now.conditions) {
		r.events.Event(after, corev1.EventTypeNormal, reasonProgrammed, "All that was wrong with the object is mended.")
	}
	for _, kind := range reportedTypes() {
		was, is := find(*old.conditions, kind), find(*now.conditions, kind)
		if !isFalse(is) || is.Reason == nil || is.Message == nil || *is.Reason == reasonNotAccepted {
			continue
		}
		if !isFalse(was) || was.Reason == nil || *was.Reason != *is.Reason {
			r.events.Event(after, corev1.EventTypeWarning, *is.Reason, *is.Message)
		}
	}
}

// reportedTypes are the conditions that events tell of.
func reportedTypes() []v1beta2.ConditionType {
	return []v1beta2.ConditionType{v1beta2.Accepted, v1beta2.ResolvedRefs, v1beta2.Programmed}
}

func failing(list []v1beta2.Condition) bool {
	return slices.ContainsFunc(reportedTypes(), func(kind v1beta2.ConditionType) bool { return isFalse(find(list, kind)) })
}

func isFalse(c *v1beta2.Condition) bool { return c != nil && c.Status == metav1.ConditionFalse }
