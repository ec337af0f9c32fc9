// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// format is the -o flag of a command.
type format struct {
	value   string
	allowed []string
}

// addFormat gives c an -o flag that takes one of allowed; the first is the default.
func addFormat(c *cobra.Command, allowed ...string) *format {
	f := &format{value: allowed[0], allowed: allowed}
	c.Flags().StringVarP(&f.value, "output", "o", allowed[0], "output format: "+strings.Join(allowed, ", "))
	mustComplete(c, "output", allowed)
	return f
}

// mustComplete offers values for a flag in shell completion. It fails only for a flag that does not exist, which every test would show.
func mustComplete(c *cobra.Command, flag string, values []string) {
	if err := c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}

func (f *format) check() error {
	if slices.Contains(f.allowed, f.value) {
		return nil
	}
	return usagef("-o %s: want one of %s", f.value, strings.Join(f.allowed, ", "))
}

// write writes v as JSON or YAML.
func (f *format) write(w io.Writer, v any) error {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	if f.value == "yaml" {
		if text, err = yaml.JSONToYAML(text); err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// table writes rows under a header, in columns.
func table(w io.Writer, header []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range slices.Concat([][]string{header}, rows) {
		if _, err := fmt.Fprintln(t, strings.Join(row, "\t")); err != nil {
			return err
		}
	}
	return t.Flush()
}
