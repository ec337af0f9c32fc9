// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// structInfo is what filling a struct needs to know of its type.
type structInfo struct {
	fields map[string]structField
	// names are those of the fields, sorted.
	names []string
	// required are the fields of our own API types that must be given.
	required []string
}

type structField struct{ index []int }

// typeCache keeps what was learnt of types. It is not safe for concurrent use.
type typeCache struct{ types map[reflect.Type]*structInfo }

func newTypeCache() *typeCache { return &typeCache{types: map[reflect.Type]*structInfo{}} }

func (c *typeCache) of(t reflect.Type) *structInfo {
	if info := c.types[t]; info != nil {
		return info
	}
	info := &structInfo{fields: map[string]structField{}}
	info.collect(t, nil)
	for name := range info.fields {
		info.names = append(info.names, name)
	}
	slices.Sort(info.names)
	slices.Sort(info.required)
	c.types[t] = info
	return info
}

// ownAPI is in the path of the packages whose types say which fields are required: those without omitempty.
const ownAPI = "/tulle/api/"

func (s *structInfo) collect(t reflect.Type, index []int) {
	own := strings.Contains(t.PkgPath(), ownAPI)
	for i := range t.NumField() {
		field := t.Field(i)
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		at := append(slices.Clone(index), i)
		switch {
		case !field.IsExported() || tag == "-":
		case name == "" && field.Anonymous:
			s.collect(field.Type, at)
		case name != "":
			s.fields[name] = structField{index: at}
			if own && !strings.Contains(options, "omitempty") {
				s.required = append(s.required, name)
			}
		}
	}
}

// maxShown is how many characters of a value a message shows.
const maxShown = 80

// shown is a node's value as a finding shows it.
func shown(node *yaml.Node) string {
	if node.Kind == yaml.ScalarNode {
		return cut(node.Value)
	}
	return described(node)
}

// described says what a node is.
func described(node *yaml.Node) string {
	switch node.Kind {
	case yaml.MappingNode:
		return "an object"
	case yaml.SequenceNode:
		return "a list"
	case yaml.ScalarNode:
		switch node.ShortTag() {
		case "!!int", "!!float":
			return "the number " + cut(node.Value)
		case "!!bool":
			return cut(node.Value)
		}
		return fmt.Sprintf("the text %q", cut(node.Value))
	default:
		return "nothing"
	}
}

func scalarName(kind reflect.Kind) string {
	switch kind {
	case reflect.String:
		return "text"
	case reflect.Bool:
		return "true or false"
	default:
		return "a number"
	}
}

// cut shortens text to what fits in a message, on one line.
func cut(text string) string {
	text = oneLine(text)
	if runes := []rune(text); len(runes) > maxShown {
		return string(runes[:maxShown]) + "…"
	}
	return text
}

func oneLine(text string) string {
	return strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
}
