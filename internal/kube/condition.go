// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// The reasons of conditions that no finding gives.
const (
	reasonAccepted     = "Accepted"
	reasonResolved     = "ResolvedRefs"
	reasonProgrammed   = "Programmed"
	reasonActive       = "Active"
	reasonNotAccepted  = "NotAccepted"
	reasonMeshNotFound = "MeshNotFound"
)

// aspect is the condition that an error finding makes False.
func aspect(f mesh.Finding) v1beta2.ConditionType {
	switch f.Reason {
	case mesh.ReasonRefNotFound, mesh.ReasonRefAmbiguous:
		return v1beta2.ResolvedRefs
	case mesh.ReasonRejected, mesh.ReasonNotYetSupported, mesh.ReasonNoTraffic, mesh.ReasonNotCaptured:
		return v1beta2.Programmed
	default:
		return v1beta2.Accepted
	}
}

// verdict is what is known of an object when its conditions are made.
type verdict struct {
	findings []mesh.Finding
	// inForce says that the model holds something that came from the object.
	inForce bool
	// active is the object's own condition from before Tulle, "" for a kind that never had one.
	active     v1beta2.ConditionType
	generation int64
}

// conditions are those of an object, in the order in which people read them; their transition times are not set.
func (v verdict) conditions() []v1beta2.Condition {
	accepted := v.judge(v1beta2.Accepted, reasonAccepted, "The object is valid."+v.warnings())
	resolved := v.judge(v1beta2.ResolvedRefs, reasonResolved, "Everything that the object refers to exists.")
	if v.active == "" {
		return []v1beta2.Condition{accepted, resolved}
	}
	programmed := v.judge(v1beta2.Programmed, reasonProgrammed, "The object is in force, and no connected proxy refuses it.")
	switch {
	case programmed.Status == metav1.ConditionFalse:
	case v.meshMissing():
		programmed = v.condition(v1beta2.Programmed, reasonMeshNotFound, "The object's Mesh does not exist; proxies keep what they have.", false)
	case !v.inForce:
		programmed = v.condition(v1beta2.Programmed, reasonNotAccepted, "The object is not in force: see Accepted and ResolvedRefs.", false)
	}
	active := v.condition(v.active, reasonActive, "The object is in force.", true)
	for _, c := range []v1beta2.Condition{programmed, accepted} {
		if c.Status != metav1.ConditionTrue {
			active = v.condition(v.active, *c.Reason, *c.Message, false)
		}
	}
	return []v1beta2.Condition{active, accepted, resolved, programmed}
}

// meshMissing says that the object names a Mesh that does not exist.
func (v verdict) meshMissing() bool {
	return slices.ContainsFunc(v.findings, func(f mesh.Finding) bool {
		return f.Reason == mesh.ReasonRefNotFound && (f.Field == "spec.meshRef.name" || f.Field == "spec.meshName")
	})
}

// judge is False with the errors that concern a condition, True without any.
func (v verdict) judge(kind v1beta2.ConditionType, reason, message string) v1beta2.Condition {
	var errors []mesh.Finding
	for _, f := range v.findings {
		if f.Severity == mesh.SeverityError && aspect(f) == kind {
			errors = append(errors, f)
		}
	}
	if len(errors) == 0 {
		return v.condition(kind, reason, message, true)
	}
	return v.condition(kind, string(errors[0].Reason), describe(errors), false)
}

func (v verdict) condition(kind v1beta2.ConditionType, reason, message string, holds bool) v1beta2.Condition {
	status := metav1.ConditionTrue
	if !holds {
		status = metav1.ConditionFalse
	}
	return v1beta2.Condition{Type: kind, Status: status, Reason: &reason, Message: &message, ObservedGeneration: &v.generation}
}

// warnings are what the user should know though the object is valid.
func (v verdict) warnings() string {
	var list []mesh.Finding
	for _, f := range v.findings {
		if f.Severity != mesh.SeverityError {
			list = append(list, f)
		}
	}
	if len(list) == 0 {
		return ""
	}
	return " Take note: " + describe(list)
}

// The most that a message says.
const (
	mostFindings = 5
	mostBytes    = 4096
)

// describe writes findings, which are sorted, for people: where, what, and how to mend it.
func describe(findings []mesh.Finding) string {
	var parts []string
	for _, f := range findings[:min(len(findings), mostFindings)] {
		text := f.Message
		if f.Field != "" {
			text = f.Field + ": " + text
		}
		if f.Mend != "" {
			text += "; " + f.Mend
		}
		parts = append(parts, text+".")
	}
	text := strings.Join(parts, " ")
	if len(text) > mostBytes {
		text = strings.ToValidUTF8(text[:mostBytes], "") + "..."
	}
	if more := len(findings) - mostFindings; more > 0 {
		text += fmt.Sprintf(" And %d more.", more)
	}
	return text
}

// merge puts wanted in the place of conditions of the same types; others, which somebody else writes, stay behind them.
// A condition whose status is what it was keeps the time of its transition.
func merge(before, wanted []v1beta2.Condition, now metav1.Time) []v1beta2.Condition {
	out := make([]v1beta2.Condition, 0, len(wanted))
	for _, c := range wanted {
		c.LastTransitionTime = &now
		if old := find(before, c.Type); old != nil && old.Status == c.Status && old.LastTransitionTime != nil {
			c.LastTransitionTime = old.LastTransitionTime
		}
		out = append(out, c)
	}
	for _, c := range before {
		if find(wanted, c.Type) == nil {
			out = append(out, c)
		}
	}
	return out
}

func find(list []v1beta2.Condition, kind v1beta2.ConditionType) *v1beta2.Condition {
	for i := range list {
		if list[i].Type == kind {
			return &list[i]
		}
	}
	return nil
}
