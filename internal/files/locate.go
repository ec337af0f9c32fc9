// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"bytes"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Locator finds the lines of fields. It reads each file once; the zero value is ready to use.
type Locator struct {
	// objects are, by file and line, the outermost mappings that begin there.
	objects map[string]map[int]*yaml.Node
}

// Line finds the line of a field of the object that begins at a line of a file, as findings name fields
// ("spec.listeners[0].portMapping.port"). Where the file has no such field it is the line of the nearest one around it,
// and at worst the object's own.
func (l *Locator) Line(name string, line int, field string) int {
	if field == "" {
		return line
	}
	if l.objects == nil {
		l.objects = map[string]map[int]*yaml.Node{}
	}
	objects, read := l.objects[name]
	if !read {
		objects = objectsOf(name)
		l.objects[name] = objects
	}
	if object := objects[line]; object != nil {
		return follow(object, field)
	}
	return line
}

// objectsOf reads a file as far as it can be read.
func objectsOf(name string) map[int]*yaml.Node {
	text, err := readFile(name)
	if err != nil {
		return nil
	}
	objects := map[int]*yaml.Node{}
	for _, doc := range split(text) {
		decoder := yaml.NewDecoder(bytes.NewReader(doc.text))
		for {
			var root yaml.Node
			if err := decoder.Decode(&root); err != nil {
				break // its end, or a fault that a finding of its own tells
			}
			addLines(&root, doc.line)
			index(&root, objects)
		}
	}
	return objects
}

// index notes the outermost mapping that begins at each line.
func index(node *yaml.Node, objects map[int]*yaml.Node) {
	if node.Kind == yaml.MappingNode && objects[node.Line] == nil {
		objects[node.Line] = node
	}
	for _, child := range node.Content {
		index(child, objects)
	}
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
