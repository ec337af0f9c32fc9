// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Locate finds the line of a field of the object that begins at a line of a file, as findings name fields
// ("spec.listeners[0].portMapping.port"). Where the file has no such field it is the line of the nearest one around it,
// and at worst the object's own.
func Locate(name string, line int, field string) int {
	text, err := readFile(name)
	if err != nil || field == "" {
		return line
	}
	for _, doc := range split(text) {
		decoder := yaml.NewDecoder(bytes.NewReader(doc.text))
		for {
			var root yaml.Node
			if err := decoder.Decode(&root); err != nil {
				if !errors.Is(err, io.EOF) {
					return line
				}
				break
			}
			addLines(&root, doc.line)
			if object := at(&root, line); object != nil {
				return follow(object, field)
			}
		}
	}
	return line
}

// at finds the outermost mapping that begins at a line.
func at(node *yaml.Node, line int) *yaml.Node {
	if node.Kind == yaml.MappingNode && node.Line == line {
		return node
	}
	for _, child := range node.Content {
		if found := at(child, line); found != nil {
			return found
		}
	}
	return nil
}

// follow walks a path of fields as far as it goes.
func follow(node *yaml.Node, field string) int {
	line := node.Line
	for step := range strings.SplitSeq(strings.ReplaceAll(field, "[", ".["), ".") {
		for node.Kind == yaml.AliasNode {
			node = node.Alias
		}
		next, at := stepInto(node, step)
		if next == nil {
			return line
		}
		node, line = next, at
	}
	return line
}

func stepInto(node *yaml.Node, step string) (*yaml.Node, int) {
	if inner, ok := strings.CutPrefix(step, "["); ok {
		i, err := strconv.Atoi(strings.TrimSuffix(inner, "]"))
		if err != nil || node.Kind != yaml.SequenceNode || i < 0 || i >= len(node.Content) {
			return nil, 0
		}
		return node.Content[i], node.Content[i].Line
	}
	if node.Kind != yaml.MappingNode {
		return nil, 0
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if strings.EqualFold(node.Content[i].Value, step) {
			return node.Content[i+1], node.Content[i].Line
		}
	}
	return nil, 0
}
