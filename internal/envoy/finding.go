// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"fmt"
	"strings"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// longest is the number of characters of a name or message that findings repeat.
const longest = 300

// reporter gathers what is wrong with the parts that are made.
type reporter struct{ found []mesh.Finding }

// report takes an error against an object of the model.
func (p *reporter) report(reason mesh.Reason, at mesh.Key, f mesh.Finding) {
	f.Severity, f.Reason, f.Object = mesh.SeverityError, reason, objectOf(at)
	f.Value, f.Message = clip(f.Value), clip(f.Message)
	p.found = append(p.found, f)
}

// reject reports that Envoy's own rules refuse what was made from an object.
func (p *reporter) reject(at mesh.Key, what string, err error) {
	p.report(mesh.ReasonRejected, at, mesh.Finding{
		Value:   what,
		Message: fmt.Sprintf("Envoy would refuse %s, so it is left out: %s", clip(what), err),
		Mend:    "change the value that the message names",
	})
}

// objectOf names an object of the model by Kind and App Mesh name; the parent of a route stands as its namespace.
func objectOf(k mesh.Key) mesh.Source {
	return mesh.Source{Kind: string(k.Kind), Namespace: k.Parent, Name: clip(k.Name)}
}

// clip cuts a text to what fits a message and mends what is not UTF-8.
func clip(s string) string {
	if len(s) > longest {
		s = s[:longest] + "..."
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}
