// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import "github.com/tulle-mesh/tulle/internal/mesh"

// problem is what a finding says, apart from the object that it is about.
type problem struct {
	severity mesh.Severity
	reason   mesh.Reason
	field    string
	value    string
	message  string
	mend     string
}

// findings gathers what is found in one object.
type findings struct {
	source mesh.Source
	list   []mesh.Finding
}

func (f *findings) add(p problem) {
	if p.severity == "" {
		p.severity = mesh.SeverityError
	}
	f.list = append(f.list, mesh.Finding{
		Severity: p.severity,
		Reason:   p.reason,
		Object:   f.source,
		Field:    p.field,
		Value:    p.value,
		Message:  p.message,
		Mend:     p.mend,
	})
}
