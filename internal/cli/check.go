// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tulle-mesh/tulle/internal/files"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/plane"
)

func newCheck(env Env) *cobra.Command {
	c := &cobra.Command{
		Use:   "check (-f PATH | --cluster)",
		Short: "Say what is wrong in manifests, where, and how to mend it",
		Long: `Check reads manifests as 'tulle serve' would, builds the configuration of every virtual node, and prints what it finds.

With --cluster it looks at an installation instead, and at what the conditions of the objects in it say. It finds
  - definitions that are missing, old, stuck, stored in versions of the past, or without conversion;
  - a control plane that does not run or does not lead, and a second one beside it, such as the original controller;
  - webhooks that are missing, cannot be called or trusted, or belong to the original installation;
  - certificates that are missing, damaged, over or about to be;
  - objects and namespaces that hang in deletion;
  - pods without the proxy that their namespace asks for, with one of an older version, one that is not connected, or that wait for the original controller.
Each is said with why it matters and the command that mends it. It only reads; what you may not read is said, too.

The exit code is 0 without errors (there may be warnings), 1 with errors, and 2 for wrong use.`,
		Example: `  # A folder, not recursively
  tulle check -f manifests/

  # What Helm would apply, as JSON
  helm template mychart | tulle check -f - -o json

  # The cluster of the current context
  tulle check --cluster`,
	}
	in := addInput(c)
	f := addCluster(c)
	inCluster := c.Flags().Bool("cluster", false, "in place of -f: check the installation in a cluster, and the objects there")
	c.MarkFlagsMutuallyExclusive("cluster", "filename")
	out := addFormat(c, "text", "json", "yaml")
	c.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := out.check(); err != nil {
			return err
		}
		if len(in.paths) == 0 && *inCluster {
			return checkCluster(cmd.Context(), env, f, out)
		}
		return check(cmd.Context(), env, in, out)
	}
	return c
}

func check(ctx context.Context, env Env, in *input, out *format) error {
	loaded, err := in.load(ctx, env)
	if err != nil {
		return err
	}
	findings := locate(append(loaded.store.Findings(), plane.Check(loaded.store.Snapshot())...))
	return writeCheck(env, out, loaded.summary, findings)
}

// writeCheck prints findings after which a summary of what was looked at follows, and is an error where one of them is.
func writeCheck(env Env, out *format, summary string, findings []mesh.Finding) error {
	var err error
	if out.value == "text" {
		err = printFindings(env.Stdout, env.Color, findings)
		if err == nil {
			_, err = fmt.Fprintf(env.Stdout, "%s; %s\n", summary, tally(findings))
		}
	} else {
		err = out.write(env.Stdout, rows(findings))
	}
	if err != nil {
		return err
	}
	for _, f := range findings {
		if f.Severity == mesh.SeverityError {
			return exitError(codeError)
		}
	}
	return nil
}

// locate moves each finding from the line of its object to that of its field, as far as the file tells.
func locate(findings []mesh.Finding) []mesh.Finding {
	var locator files.Locator
	for i, f := range findings {
		if f.Object.File != "" && f.Object.Line > 0 && f.Field != "" {
			findings[i].Object.Line = locator.Line(f.Object.File, f.Object.Line, f.Field)
		}
	}
	return mesh.SortFindings(findings)
}

// findingRow is a finding as machines read it.
type findingRow struct {
	Severity mesh.Severity `json:"severity"`
	Reason   mesh.Reason   `json:"reason"`
	Object   string        `json:"object"`
	Field    string        `json:"field"`
	Value    string        `json:"value,omitempty"`
	File     string        `json:"file"`
	Line     int           `json:"line"`
	Message  string        `json:"message"`
	Mend     string        `json:"mend"`
}

func rows(findings []mesh.Finding) []findingRow {
	list := make([]findingRow, 0, len(findings))
	for _, f := range findings {
		list = append(list, findingRow{
			Severity: f.Severity, Reason: f.Reason, Object: objectName(f.Object), Field: f.Field, Value: f.Value,
			File: f.Object.File, Line: f.Object.Line, Message: f.Message, Mend: f.Mend,
		})
	}
	return list
}

func objectName(s mesh.Source) string {
	if s.Kind == "" {
		return ""
	}
	return s.String()
}

// printFindings writes findings as compilers do, the mend on a line of its own.
func printFindings(w io.Writer, color bool, findings []mesh.Finding) error {
	for _, f := range findings {
		var b strings.Builder
		if f.Object.File != "" {
			b.WriteString(plain(f.Object.File))
			if f.Object.Line > 0 {
				fmt.Fprintf(&b, ":%d", f.Object.Line)
			}
			b.WriteString(": ")
		}
		b.WriteString(paint(color, f.Severity))
		b.WriteString(": ")
		if name := objectName(f.Object); name != "" {
			b.WriteString(plain(name) + ": ")
		}
		if f.Field != "" {
			b.WriteString(plain(f.Field) + ": ")
		}
		fmt.Fprintf(&b, "%s [%s]\n", plain(f.Message), f.Reason)
		if f.Mend != "" {
			fmt.Fprintf(&b, "    %s\n", plain(f.Mend))
		}
		if _, err := io.WriteString(w, b.String()); err != nil {
			return err
		}
	}
	return nil
}

// plain keeps what manifests say from steering a terminal or breaking a line: what cannot be printed is written as in a Go string.
func plain(text string) string {
	if strings.IndexFunc(text, unprintable) < 0 {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if !unprintable(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRune(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}

func unprintable(r rune) bool { return !strconv.IsPrint(r) }

func paint(color bool, s mesh.Severity) string {
	if !color {
		return string(s)
	}
	code := map[mesh.Severity]string{mesh.SeverityError: "31", mesh.SeverityWarning: "33"}[s]
	if code == "" {
		return string(s)
	}
	return "\x1b[1;" + code + "m" + string(s) + "\x1b[0m"
}

func tally(findings []mesh.Finding) string {
	count := map[mesh.Severity]int{}
	for _, f := range findings {
		count[f.Severity]++
	}
	return fmt.Sprintf("%s, %s", plural(count[mesh.SeverityError], "error"), plural(count[mesh.SeverityWarning], "warning"))
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
