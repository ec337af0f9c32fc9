// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package crds carries the CustomResourceDefinitions of this folder in the program. The command line prints and installs them; tests may read them.
package crds

import (
	"embed"
	"fmt"
	"io/fs"
)

//go:embed *.yaml
var files embed.FS

// File is one CustomResourceDefinition.
type File struct {
	// Name is the file's, as appmesh.k8s.aws_meshes.yaml.
	Name string
	// Text is its YAML, one document.
	Text []byte
}

// Files returns all definitions, in the order of their names.
func Files() ([]File, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("the program carries no CustomResourceDefinitions: %w", err)
	}
	all := make([]File, 0, len(entries))
	for _, entry := range entries {
		text, err := fs.ReadFile(files, entry.Name())
		if err != nil {
			return nil, fmt.Errorf("the program's %s: %w", entry.Name(), err)
		}
		all = append(all, File{Name: entry.Name(), Text: text})
	}
	return all, nil
}
