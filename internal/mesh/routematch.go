// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"fmt"
	"regexp/syntax"
	"strconv"
	"strings"
)

// matchFaults are the conditions of a route that no proxy can evaluate. One of them would make Envoy refuse the whole table of routes, so the route is left out alone.
func matchFaults(route *Route, form *routeForm) []Finding {
	var list []Finding
	add := func(field, value, fault, mend string) {
		list = append(list, Finding{
			Severity: SeverityError, Reason: ReasonInvalid, Object: route.Source, Field: route.field(form.member + ".match." + field), Value: shorten(value),
			Message: fmt.Sprintf("route %q is left out: %s", route.Name, fault), Mend: mend,
		})
	}
	headers, listName := []HeaderMatch(nil), "headers"
	switch {
	case form.HTTP != nil:
		headers = form.HTTP.Headers
		if p := form.HTTP.Path; p != nil && p.Regex != nil {
			if fault := regexFault(*p.Regex); fault != "" {
				add("path.regex", *p.Regex, fault, mendRegex)
			}
		}
		for i, q := range form.HTTP.QueryParameters {
			if q.Name == "" {
				add("queryParameters["+strconv.Itoa(i)+"].name", "", "it matches a query parameter without a name", "name the parameter")
			}
		}
	case form.GRPC != nil:
		headers, listName = form.GRPC.Metadata, "metadata"
	}
	for i, h := range headers {
		field := listName + "[" + strconv.Itoa(i) + "]"
		if !headerName(h.Name) {
			add(field+".name", h.Name, "it matches a header whose name no header can have", "use letters, digits and the characters !#$%&'*+-.^_`|~ in the name, with a colon at most in front")
		}
		switch m := h.Match; {
		case m == nil:
		case m.Regex != nil:
			if fault := regexFault(*m.Regex); fault != "" {
				add(field+".match.regex", *m.Regex, fault, mendRegex)
			}
		case m.Range != nil && m.Range.End <= m.Range.Start:
			add(field+".match.range", fmt.Sprintf("%d-%d", m.Range.Start, m.Range.End), "its range is empty, since the end must be greater than the start", "make end greater than start")
		}
	}
	return list
}

const mendRegex = "write the expression in RE2's syntax"

// regexFault says why a regular expression is not in RE2's syntax, or "".
func regexFault(expression string) string {
	if _, err := syntax.Parse(expression, syntax.Perl); err != nil {
		return "its regular expression cannot be read: " + shorten(err.Error())
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
