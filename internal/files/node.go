// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// maxNodes bounds what one document may unfold to, so that aliases of aliases cannot eat all memory.
const maxNodes = 4_000_000

// maxDepth bounds nesting.
const maxDepth = 200

// fault is something wrong in a document.
type fault struct {
	severity mesh.Severity
	reason   mesh.Reason
	field    string
	value    string
	line     int
	message  string
	mend     string
}

// filler fills Go values from YAML nodes by their JSON names and gathers every fault on the way: unknown and duplicate
// fields, wrong types, missing fields.
type filler struct {
	types  *typeCache
	path   []string
	faults []fault
	nodes  int
	depth  int
}

// failed says whether a fault keeps the object from being used.
func (f *filler) failed() bool {
	return slices.ContainsFunc(f.faults, func(x fault) bool { return x.severity == mesh.SeverityError })
}

func (f *filler) field() string {
	return strings.TrimPrefix(strings.Join(f.path, ""), ".")
}

func (f *filler) push(segment string) { f.path = append(f.path, segment) }
func (f *filler) pop()                { f.path = f.path[:len(f.path)-1] }

func (f *filler) wrong(node *yaml.Node, want, mend string) {
	f.faults = append(f.faults, fault{
		severity: mesh.SeverityError,
		reason:   mesh.ReasonInvalid,
		field:    f.field(),
		value:    shown(node),
		line:     node.Line,
		message:  fmt.Sprintf("%s must be %s, not %s", f.field(), want, described(node)),
		mend:     mend,
	})
}

// fill sets v from node. What cannot be set is left alone and noted.
func (f *filler) fill(node *yaml.Node, v reflect.Value) {
	node, ok := f.enter(node)
	if !ok {
		return
	}
	defer func() { f.depth-- }()
	if isNull(node) {
		return
	}
	if v.Kind() == reflect.Pointer {
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		f.fill(node, v.Elem())
		return
	}
	if v.CanAddr() {
		if own, ok := reflect.TypeAssert[json.Unmarshaler](v.Addr()); ok {
			f.unmarshal(node, own)
			return
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		f.fillStruct(node, v)
	case reflect.Map:
		f.fillMap(node, v)
	case reflect.Slice:
		f.fillSlice(node, v)
	case reflect.Interface:
		if value := f.plain(node); value != nil {
			v.Set(reflect.ValueOf(value))
		}
	default:
		f.fillScalar(node, v)
	}
}

// enter follows an alias and counts; it says false where a document is too large or too deep. Each enter that says true
// needs one step back of depth.
func (f *filler) enter(node *yaml.Node) (*yaml.Node, bool) {
	f.nodes++
	f.depth++
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if f.nodes <= maxNodes && f.depth <= maxDepth {
		return node, true
	}
	f.depth--
	if f.nodes == maxNodes+1 || f.depth == maxDepth {
		f.faults = append(f.faults, fault{
			severity: mesh.SeverityError,
			reason:   mesh.ReasonUnreadable,
			field:    f.field(),
			line:     node.Line,
			message:  "the document is nested too deeply, or its aliases unfold to too much",
			mend:     "write it out without aliases",
		})
	}
	return node, false
}

func (f *filler) unmarshal(node *yaml.Node, into json.Unmarshaler) {
	text, err := json.Marshal(f.plain(node))
	if err == nil {
		err = into.UnmarshalJSON(text)
	}
	if err != nil {
		f.wrong(node, "a value of its type ("+oneLine(err.Error())+")", "correct the value")
	}
}

func (f *filler) fillStruct(node *yaml.Node, v reflect.Value) {
	if node.Kind != yaml.MappingNode {
		f.wrong(node, "an object", "write its fields below it, indented")
		return
	}
	info := f.types.of(v.Type())
	seen := make(map[string]struct{}, len(node.Content)/2)
	f.each(node, func(key string, keyNode, value *yaml.Node) {
		seen[key] = struct{}{}
		field, ok := info.fields[key]
		f.push("." + key)
		defer f.pop()
		if !ok {
			f.unknown(key, keyNode, info.names)
			return
		}
		f.fill(value, v.FieldByIndex(field.index))
	})
	for _, name := range info.required {
		if _, ok := seen[name]; ok {
			continue
		}
		f.push("." + name)
		f.faults = append(f.faults, fault{
			severity: mesh.SeverityError,
			reason:   mesh.ReasonInvalid,
			field:    f.field(),
			line:     node.Line,
			message:  f.field() + " is missing, and the API asks for it",
			mend:     "add the field",
		})
		f.pop()
	}
}

func (f *filler) unknown(key string, node *yaml.Node, names []string) {
	x := fault{
		severity: mesh.SeverityWarning,
		reason:   mesh.ReasonUnknownField,
		field:    f.field(),
		value:    key,
		line:     node.Line,
		message:  fmt.Sprintf("the API has no field %s; it is ignored", f.field()),
		mend:     "remove the field",
	}
	if near := nearest(key, names); near != "" {
		x.mend = fmt.Sprintf("write %q, or remove the field", near)
	}
	f.faults = append(f.faults, x)
}

// each calls do for every entry of a mapping, those of merge keys included where the mapping itself does not have them.
func (f *filler) each(node *yaml.Node, do func(key string, keyNode, value *yaml.Node)) {
	lines := make(map[string]int, len(node.Content)/2)
	var merged []*yaml.Node
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], node.Content[i+1]
		for key.Kind == yaml.AliasNode {
			key = key.Alias
		}
		if key.Tag == "!!merge" {
			merged = append(merged, value)
			continue
		}
		if key.Kind != yaml.ScalarNode {
			f.wrong(key, "an object whose keys are text", "correct the key")
			continue
		}
		if first, twice := lines[key.Value]; twice {
			f.twice(key, first)
			continue
		}
		lines[key.Value] = key.Line
		do(key.Value, key, value)
	}
	for _, value := range merged {
		f.merge(value, lines, do)
	}
}

func (f *filler) merge(node *yaml.Node, lines map[string]int, do func(key string, keyNode, value *yaml.Node)) {
	node, ok := f.enter(node)
	if !ok {
		return
	}
	defer func() { f.depth-- }()
	if node.Kind == yaml.SequenceNode {
		for _, item := range node.Content {
			f.merge(item, lines, do)
		}
		return
	}
	if node.Kind != yaml.MappingNode {
		f.wrong(node, "an object or a list of objects to merge", "point << to an object")
		return
	}
	f.each(node, func(key string, keyNode, value *yaml.Node) {
		if _, had := lines[key]; !had {
			lines[key] = keyNode.Line
			do(key, keyNode, value)
		}
	})
}

func (f *filler) twice(key *yaml.Node, first int) {
	f.push("." + key.Value)
	mend := "remove one of the two"
	if name := f.field(); name == "apiVersion" || name == "kind" {
		mend = "put a line --- between two objects, or remove one of the two"
	}
	f.faults = append(f.faults, fault{
		severity: mesh.SeverityError,
		reason:   mesh.ReasonDuplicate,
		field:    f.field(),
		value:    key.Value,
		line:     key.Line,
		message:  fmt.Sprintf("%s is given twice, first in line %d", f.field(), first),
		mend:     mend,
	})
	f.pop()
}

func (f *filler) fillMap(node *yaml.Node, v reflect.Value) {
	if node.Kind != yaml.MappingNode {
		f.wrong(node, "an object", "write its keys below it, indented")
		return
	}
	t := v.Type()
	v.Set(reflect.MakeMapWithSize(t, len(node.Content)/2))
	f.each(node, func(key string, _, value *yaml.Node) {
		f.push("." + key)
		defer f.pop()
		item := reflect.New(t.Elem()).Elem()
		f.fill(value, item)
		v.SetMapIndex(reflect.ValueOf(key).Convert(t.Key()), item)
	})
}

func (f *filler) fillSlice(node *yaml.Node, v reflect.Value) {
	if v.Type().Elem().Kind() == reflect.Uint8 {
		f.fillBytes(node, v)
		return
	}
	if node.Kind != yaml.SequenceNode {
		f.wrong(node, "a list", "begin each item with a dash")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(node.Content), len(node.Content)))
	for i, item := range node.Content {
		f.push("[" + strconv.Itoa(i) + "]")
		f.fill(item, v.Index(i))
		f.pop()
	}
}

func (f *filler) fillBytes(node *yaml.Node, v reflect.Value) {
	var bytes []byte
	text, err := json.Marshal(f.plain(node))
	if err == nil {
		err = json.Unmarshal(text, &bytes)
	}
	if err != nil {
		f.wrong(node, "text in base64", "correct the value")
		return
	}
	v.SetBytes(bytes)
}

func (f *filler) fillScalar(node *yaml.Node, v reflect.Value) {
	if node.Kind != yaml.ScalarNode {
		f.wrong(node, scalarName(v.Kind()), "write one value")
		return
	}
	switch v.Kind() {
	case reflect.String:
		if isText(node) {
			v.SetString(node.Value)
			return
		}
		f.wrong(node, "text", "put the value in quotes")
	case reflect.Bool:
		if value, err := strconv.ParseBool(node.Value); err == nil && node.ShortTag() == "!!bool" {
			v.SetBool(value)
			return
		}
		f.wrong(node, "true or false", "write true or false, without quotes")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		if value, ok := integer(node); ok && !v.OverflowInt(value) {
			v.SetInt(value)
			return
		}
		f.wrong(node, "a whole number", "write a whole number that is not too large, without quotes")
	case reflect.Float32, reflect.Float64:
		if value, err := strconv.ParseFloat(node.Value, 64); err == nil && !math.IsNaN(value) {
			v.SetFloat(value)
			return
		}
		f.wrong(node, "a number", "write a number, without quotes")
	default:
		f.wrong(node, "left out", "remove the field")
	}
}

// isText says whether a scalar is text where text is asked for. Dates are, for JSON has none.
func isText(node *yaml.Node) bool {
	switch node.ShortTag() {
	case "!!str", "!!timestamp", "!!binary":
		return true
	}
	return false
}

// plain is a node as encoding/json would decode it.
func (f *filler) plain(node *yaml.Node) any {
	node, ok := f.enter(node)
	if !ok {
		return nil
	}
	defer func() { f.depth-- }()
	switch node.Kind {
	case yaml.MappingNode:
		out := map[string]any{}
		f.each(node, func(key string, _, value *yaml.Node) { out[key] = f.plain(value) })
		return out
	case yaml.SequenceNode:
		out := make([]any, 0, len(node.Content))
		for _, item := range node.Content {
			out = append(out, f.plain(item))
		}
		return out
	case yaml.ScalarNode:
		return scalar(node)
	default:
		return nil
	}
}

func scalar(node *yaml.Node) any {
	switch node.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(node.Value, "true")
	case "!!int":
		if value, ok := integer(node); ok {
			return value
		}
	case "!!float":
		if value, err := strconv.ParseFloat(node.Value, 64); err == nil && !math.IsNaN(value) && !math.IsInf(value, 0) {
			return value
		}
	}
	return node.Value
}

// integer reads a whole number in any of YAML's forms; 3.0 counts, as in JSON.
func integer(node *yaml.Node) (int64, bool) {
	var value int64
	switch node.ShortTag() {
	case "!!int":
		return value, node.Decode(&value) == nil
	case "!!float":
		number, err := strconv.ParseFloat(node.Value, 64)
		if err != nil || number != math.Trunc(number) || math.Abs(number) > 1<<53 {
			return 0, false
		}
		return int64(number), true
	}
	return 0, false
}

func isNull(node *yaml.Node) bool {
	return node.Kind == 0 || node.Kind == yaml.ScalarNode && node.ShortTag() == "!!null"
}
