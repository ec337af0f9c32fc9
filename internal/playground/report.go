// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package playground

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Report is what came of a scenario.
type Report struct {
	Scenario string `json:"scenario"`
	// OK says that every check was made and held.
	OK     bool    `json:"ok"`
	Checks []Check `json:"checks"`
	// Seconds is the time that all steps took.
	Seconds float64 `json:"seconds"`
}

// Check is one thing that was expected.
type Check struct {
	// Check is the name that the scenario gives it; several may share one.
	Check string `json:"check"`
	// What was expected, and what was found.
	What  string `json:"what"`
	Found string `json:"found"`
	OK    bool   `json:"ok"`
	// Millis is a measured time, where the check is about one.
	Millis float64 `json:"millis,omitempty"`
	// Requests, Failed and Bodies are counts, where the check is about load; Bodies counts responses by their bodies.
	Requests int            `json:"requests,omitempty"`
	Failed   int            `json:"failed,omitempty"`
	Bodies   map[string]int `json:"bodies,omitempty"`
}

// Table writes the report for people.
func (r Report) Table(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(t, "CHECK\tRESULT\tEXPECTED\tFOUND") // the error comes with Flush
	for _, c := range r.Checks {
		result := "ok"
		if !c.OK {
			result = "FAILED"
		}
		_, _ = fmt.Fprintf(t, "%s\t%s\t%s\t%s\n", c.Check, result, oneLine(c.What), oneLine(c.Found))
	}
	if err := t.Flush(); err != nil {
		return fmt.Errorf("writing the report: %w", err)
	}
	verdict := "all hold"
	if !r.OK {
		verdict = "NOT all hold"
	}
	_, err := fmt.Fprintf(w, "\n%s: %d checks, %s, %.1f s\n", r.Scenario, len(r.Checks), verdict, r.Seconds)
	return err
}

// oneLine keeps tabs and line ends out of a table.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
