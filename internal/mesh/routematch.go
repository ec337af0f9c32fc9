// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"errors"
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
)

// matchFault is a condition that no proxy can evaluate. One of them would make Envoy refuse the whole table of routes.
type matchFault struct {
	// field is the path within the match.
	field string
	value string
	fault string
	mend  string
}

// matchFaults are the conditions for which the route is left out, alone.
func matchFaults(route *Route, form *routeForm) []Finding {
	var faults []matchFault
	switch {
	case form.HTTP != nil:
		faults = httpFaults(form.HTTP.Path, form.HTTP.QueryParameters, form.HTTP.Headers)
	case form.GRPC != nil:
		faults = headerFaults("metadata", form.GRPC.Metadata)
	}
	list := make([]Finding, 0, len(faults))
	for _, f := range faults {
		list = append(list, Finding{
			Severity: SeverityError, Reason: ReasonInvalid, Object: route.Source, Field: route.field(form.member + ".match." + f.field), Value: shorten(f.value),
			Message: fmt.Sprintf("route %q is left out: %s", shorten(route.Name), f.fault), Mend: f.mend,
		})
	}
	return list
}

func httpFaults(path *HTTPPathMatch, query []QueryParameter, headers []HeaderMatch) []matchFault {
	faults := headerFaults("headers", headers)
	if path != nil && path.Regex != nil {
		if fault := regexFault(*path.Regex); fault != "" {
			faults = append(faults, matchFault{"path.regex", *path.Regex, fault, mendRegex})
		}
	}
	for i, q := range query {
		if q.Name == "" {
			faults = append(faults, matchFault{at("queryParameters", i) + ".name", "", "it matches a query parameter without a name", "name the parameter"})
		}
	}
	return faults
}

func headerFaults(list string, headers []HeaderMatch) []matchFault {
	var faults []matchFault
	for i, h := range headers {
		field := at(list, i)
		if !headerName(h.Name) {
			faults = append(faults, matchFault{field + ".name", h.Name, "it matches a header whose name no header can have", mendHeaderName})
		}
		switch m := h.Match; {
		case m == nil:
		case m.Regex != nil:
			if fault := regexFault(*m.Regex); fault != "" {
				faults = append(faults, matchFault{field + ".match.regex", *m.Regex, fault, mendRegex})
			}
		case m.Range != nil && m.Range.End <= m.Range.Start:
			faults = append(faults, matchFault{field + ".match.range", fmt.Sprintf("%d-%d", m.Range.Start, m.Range.End), "its range is empty, since the end must be greater than the start", "make end greater than start"})
		}
	}
	return faults
}

const (
	mendRegex      = "write the expression in RE2's syntax"
	mendHeaderName = "use letters, digits and the characters !#$%&'*+-.^_`|~ in the name, with a colon at most in front"
)

// maxRegex is the longest regular expression, in bytes, that proxies are given. The API allows 255 characters.
const maxRegex = 4096

// regexFault says why a regular expression cannot be used, in RE2's syntax, or "".
func regexFault(expression string) string {
	if len(expression) > maxRegex {
		return fmt.Sprintf("its regular expression is longer than %d bytes", maxRegex)
	}
	_, err := syntax.Parse(expression, syntax.Perl)
	if fault, ok := errors.AsType[*syntax.Error](err); ok {
		return "its regular expression cannot be read: " + fault.Code.String()
	}
	return ""
}

// headerName says whether a header can have this name. Source: RFC 9110, token; HTTP/2's own begin with a colon.
func headerName(name string) bool {
	name = strings.TrimPrefix(name, ":")
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("!#$%&'*+-.^_`|~", rune(c)) {
			return false
		}
	}
	return name != ""
}

// quoted lists the members of an enum for a message: "a", "b".
func quoted[T ~string](values []T) string {
	parts := make([]string, len(values))
	for i, v := range values {
		parts[i] = strconv.Quote(string(v))
	}
	return strings.Join(parts, ", ")
}
