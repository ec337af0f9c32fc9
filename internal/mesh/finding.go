// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"cmp"
	"slices"
)

// Finding is something that the user should know about an object: what is wrong, where, and how to mend it. Findings are values; they are never logged or written to a status by the package that made them.
type Finding struct {
	Severity Severity `json:"severity"`
	Reason   Reason   `json:"reason"`
	// Object is the custom resource or manifest at fault; it may be empty where a file could not be read at all.
	Object Source `json:"object"`
	// Field is the path in the object as the user wrote it: "spec.listeners[0].portMapping.port".
	Field string `json:"field,omitempty"`
	// Value is the value at fault, as text.
	Value string `json:"value,omitempty"`
	// Message says what is wrong, in one sentence that stands alone.
	Message string `json:"message"`
	// Mend says what to do about it.
	Mend string `json:"mend,omitempty"`
}

// Severity ranks findings.
type Severity string

// The severities: an error means that something the user asked for is not in force.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
	SeverityInfo    Severity = "info"
)

// Reason classes findings; it is also the reason of status conditions.
type Reason string

// The reasons.
const (
	// ReasonInvalid is a value that the API does not allow.
	ReasonInvalid Reason = "Invalid"
	// ReasonUnknownField is a field that the API does not have.
	ReasonUnknownField Reason = "UnknownField"
	// ReasonUnreadable is a file or document that cannot be read.
	ReasonUnreadable Reason = "Unreadable"
	// ReasonRefNotFound is a reference to something that does not exist.
	ReasonRefNotFound Reason = "RefNotFound"
	// ReasonRefAmbiguous is a reference that two objects answer.
	ReasonRefAmbiguous Reason = "RefAmbiguous"
	// ReasonConflicted is an App Mesh name that an older object holds.
	ReasonConflicted Reason = "Conflicted"
	// ReasonDuplicate is the same object, name or port twice.
	ReasonDuplicate Reason = "Duplicate"
	// ReasonNoMesh is an object that belongs to no mesh, or to several.
	ReasonNoMesh Reason = "NoMesh"
	// ReasonNotYetSupported is a field that Tulle does not act on yet.
	ReasonNotYetSupported Reason = "NotYetSupported"
	// ReasonPortConflict is a port that two things claim in ways that cannot both hold.
	ReasonPortConflict Reason = "PortConflict"
	// ReasonProtocolMismatch is a route or target whose protocol is not its listener's.
	ReasonProtocolMismatch Reason = "ProtocolMismatch"
	// ReasonNoTraffic is a route that can take no request: all weights are 0, or no target is left.
	ReasonNoTraffic Reason = "NoTraffic"
	// ReasonNotCaptured is an endpoint port that the redirect does not bring to the proxy.
	ReasonNotCaptured Reason = "NotCaptured"
	// ReasonRejected is configuration that Envoy's own rules refuse.
	ReasonRejected Reason = "Rejected"
	// ReasonIgnored is a value that is accepted and means nothing here.
	ReasonIgnored Reason = "Ignored"
)

// Compare orders findings by file, line, object, field, reason and message, so that lists of them are stable.
func (f Finding) Compare(o Finding) int {
	return cmp.Or(
		cmp.Compare(f.Object.File, o.Object.File), cmp.Compare(f.Object.Line, o.Object.Line),
		cmp.Compare(f.Object.Kind, o.Object.Kind), cmp.Compare(f.Object.Namespace, o.Object.Namespace), cmp.Compare(f.Object.Name, o.Object.Name),
		cmp.Compare(f.Field, o.Field), cmp.Compare(f.Reason, o.Reason), cmp.Compare(f.Message, o.Message),
	)
}

// SortFindings sorts findings and drops those that say the same twice.
func SortFindings(list []Finding) []Finding {
	slices.SortFunc(list, Finding.Compare)
	return slices.Compact(list)
}
