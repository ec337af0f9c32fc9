// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tulle-mesh/tulle/internal/admission/review"
)

// document is an object as it was sent, of which nothing is lost whatever fields it has. Each change is also a step of a JSON patch.
type document struct {
	root       map[string]any
	operations []review.Operation
}

func parse(raw []byte) (*document, error) {
	d := &document{}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber() // numbers stay as they were written
	if err := decoder.Decode(&d.root); err != nil {
		return nil, err
	}
	if d.root == nil {
		return nil, fmt.Errorf("it is %s", bytes.TrimSpace(raw))
	}
	return d, nil
}

// at returns what is under a path of field names and indexes; nil for nothing.
func (d *document) at(path ...string) any {
	var node any = d.root
	for _, step := range path {
		switch n := node.(type) {
		case map[string]any:
			node = n[step]
		case []any:
			i, err := strconv.Atoi(step)
			if err != nil || i < 0 || i >= len(n) {
				return nil
			}
			node = n[i]
		default:
			return nil
		}
	}
	return node
}

// set writes a field of an object, and the objects above it that are missing. The parent must not be a list.
func (d *document) set(value any, path ...string) error {
	value, err := plain(value)
	if err != nil {
		return err
	}
	for i := 1; i < len(path); i++ {
		if d.at(path[:i]...) == nil {
			for _, step := range slices.Backward(path[i:]) {
				value = map[string]any{step: value}
			}
			path = path[:i]
			break
		}
	}
	parent, ok := d.at(path[:len(path)-1]...).(map[string]any)
	if !ok {
		return fmt.Errorf("%s is no object", pointer(path[:len(path)-1]))
	}
	parent[path[len(path)-1]] = value
	d.operations = append(d.operations, review.Operation{Op: "add", Path: pointer(path), Value: value})
	return nil
}

// remove takes a field out of an object; one that is not there is no fault.
func (d *document) remove(path ...string) {
	parent, ok := d.at(path[:len(path)-1]...).(map[string]any)
	last := path[len(path)-1]
	if _, has := parent[last]; !ok || !has {
		return
	}
	delete(parent, last)
	d.operations = append(d.operations, review.Operation{Op: "remove", Path: pointer(path)})
}

// last is the index behind a list's end.
const last = -1

// insert puts a value into a list, which is made if it is not there.
func (d *document) insert(index int, value any, path ...string) error {
	value, err := plain(value)
	if err != nil {
		return err
	}
	found := d.at(path...)
	if found == nil {
		return d.set([]any{value}, path...)
	}
	list, ok := found.([]any)
	parent, in := d.at(path[:len(path)-1]...).(map[string]any)
	if !ok || !in {
		return fmt.Errorf("%s is no list", pointer(path))
	}
	place := strconv.Itoa(index)
	if index == last {
		index, place = len(list), "-"
	}
	parent[path[len(path)-1]] = slices.Insert(slices.Clone(list), index, value)
	d.operations = append(d.operations, review.Operation{Op: "add", Path: pointer(path) + "/" + place, Value: value})
	return nil
}

// plain makes a value what reading its JSON gives.
func plain(value any) (any, error) {
	text, err := json.Marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	err = decoder.Decode(&out)
	return out, err
}

// pointer writes a path as RFC 6901 has it.
func pointer(path []string) string {
	var b strings.Builder
	escape := strings.NewReplacer("~", "~0", "/", "~1")
	for _, step := range path {
		b.WriteString("/" + escape.Replace(step))
	}
	return b.String()
}
