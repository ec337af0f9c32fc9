// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package examples carries the scenarios that tulle playground knows by name; the command line alone calls it.
package examples

import (
	"embed"
	"fmt"
	"io/fs"
	"strings"
)

//go:embed djapp djapp-v1beta2
var files embed.FS

// Scenario returns the directory of the scenario with the name, or an error that lists those there are.
func Scenario(name string) (fs.FS, error) {
	names := Names()
	for _, n := range names {
		if n == name {
			dir, err := fs.Sub(files, n)
			if err != nil {
				return nil, fmt.Errorf("scenario %s: %w", name, err)
			}
			return dir, nil
		}
	}
	return nil, fmt.Errorf("no scenario %q: there are %s, or name a directory that holds a scenario.yaml", name, strings.Join(names, ", "))
}

// Names lists the scenarios, sorted.
func Names() []string {
	// The embedded files cannot be missing, so an error would be a fault of the build, and an empty list shows it.
	entries, _ := files.ReadDir(".")
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
