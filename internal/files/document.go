// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// parser reads manifests. It is not safe for concurrent use.
type parser struct {
	kinds kinds
	types *typeCache
	// namespace is that of namespaced objects that name none.
	namespace string
}

// entry is an object of a file.
type entry struct {
	id     decode.ID
	object decode.Object
	// refused is set for an object that cannot be used; the one that was read before it stays in force.
	refused bool
}

// parsed is what a file holds.
type parsed struct {
	entries  []entry
	findings []mesh.Finding
	// skipped counts objects that mean nothing to the mesh, by kind.
	skipped map[string]int
	// broken is set where it cannot be told which objects the file holds.
	broken bool
}

func (p *parsed) skip(kind string) {
	if p.skipped == nil {
		p.skipped = map[string]int{}
	}
	p.skipped[kind]++
}

// parse reads all documents of a file.
func (p *parser) parse(name string, text []byte) *parsed {
	out := &parsed{}
	for _, doc := range split(text) {
		p.document(out, name, doc)
	}
	return out
}

// document is one YAML or JSON document of a file.
type document struct {
	text []byte
	// line is the number of lines before it.
	line int
}

// split cuts a file at lines that begin with three dashes.
func split(text []byte) []document {
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	var docs []document
	start, startLine, line := 0, 0, 0
	for at := 0; at < len(text); {
		end := len(text)
		if i := bytes.IndexByte(text[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		if isSeparator(text[at:end]) {
			docs = append(docs, document{text: text[start:at], line: startLine})
			start, startLine = at, line
		}
		at = end
		line++
	}
	return append(docs, document{text: text[start:], line: startLine})
}

func isSeparator(line []byte) bool {
	rest, ok := bytes.CutPrefix(line, []byte("---"))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

func (p *parser) document(out *parsed, name string, doc document) {
	text := doc.text
	if isJSON(text) {
		// JSON may be indented with tabs, YAML may not; neither has a bare tab inside text.
		text = bytes.ReplaceAll(text, []byte("\t"), []byte(" "))
	}
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var root yaml.Node
		err := decoder.Decode(&root)
		if root.Kind == 0 && (err == nil || errors.Is(err, io.EOF)) {
			return
		}
		if err != nil {
			out.unreadable(name, doc.line, err)
			return
		}
		addLines(&root, doc.line)
		p.object(out, name, root.Content[0])
	}
}

// isJSON says whether a text begins as an object in JSON does.
func isJSON(text []byte) bool {
	trimmed := bytes.TrimLeft(text, " \t\r\n")
	return len(trimmed) > 0 && trimmed[0] == '{'
}

// addLines moves the lines of a document to those of its file. Aliases are not followed: what they mean has its own place.
func addLines(node *yaml.Node, lines int) {
	if lines == 0 {
		return
	}
	node.Line += lines
	for _, child := range node.Content {
		addLines(child, lines)
	}
}

// object reads one object, or the objects of a List.
func (p *parser) object(out *parsed, name string, node *yaml.Node) {
	if isNull(node) {
		return
	}
	if node.Kind != yaml.MappingNode {
		out.broken = true
		out.add(name, mesh.Source{}, fault{
			severity: mesh.SeverityError,
			reason:   mesh.ReasonUnreadable,
			value:    shown(node),
			line:     node.Line,
			message:  "a manifest must be an object with apiVersion and kind, not " + described(node),
			mend:     "write one Kubernetes object a document",
		})
		return
	}
	apiVersion, kindName := text(node, "apiVersion"), text(node, "kind")
	source := mesh.Source{APIVersion: apiVersion, Kind: kindName, Name: text(node, "metadata", "name"), File: name, Line: node.Line}
	if apiVersion == "" || kindName == "" {
		out.broken = true
		out.add(name, source, fault{
			severity: mesh.SeverityError,
			reason:   mesh.ReasonUnreadable,
			field:    "kind",
			line:     node.Line,
			message:  "the document has no apiVersion or no kind, so nobody can tell what it is",
			mend:     "set apiVersion and kind",
		})
		return
	}
	if items := child(node, "items"); strings.HasSuffix(kindName, "List") && items != nil && items.Kind == yaml.SequenceNode {
		for _, item := range items.Content {
			p.object(out, name, item)
		}
		return
	}
	found, ok := p.kinds.find(apiVersion, kindName)
	if !ok {
		p.stranger(out, source)
		return
	}
	p.known(out, found, source, node)
}

// stranger is an object of a kind that means nothing to the mesh.
func (p *parser) stranger(out *parsed, source mesh.Source) {
	if !strings.HasPrefix(source.APIVersion, groupMesh) {
		out.skip(source.Kind)
		return
	}
	x := fault{
		severity: mesh.SeverityError,
		reason:   mesh.ReasonInvalid,
		field:    "kind",
		value:    source.APIVersion + " " + source.Kind,
		line:     source.Line,
		message:  fmt.Sprintf("the API has no kind %s in version %s", source.Kind, source.APIVersion),
		mend:     "use " + strings.Join(p.versions(source.Kind), " or "),
	}
	if len(p.versions(source.Kind)) == 0 {
		var names []string
		for version := range p.kinds {
			if strings.HasPrefix(version, groupMesh) {
				names = slices.AppendSeq(names, maps.Keys(p.kinds[version]))
			}
		}
		slices.Sort(names)
		names = slices.Compact(names)
		x.mend = "use one of the kinds " + strings.Join(names, ", ")
		if near := nearest(source.Kind, names); near != "" {
			x.mend = "write " + near
		}
	}
	out.add(source.File, source, x)
}

// versions are the versions of the mesh's group that have a kind, newest first.
func (p *parser) versions(kindName string) []string {
	var list []string
	for version, names := range p.kinds {
		if _, ok := names[kindName]; ok && strings.HasPrefix(version, groupMesh) {
			list = append(list, version)
		}
	}
	slices.Sort(list)
	slices.Reverse(list)
	return list
}

// known reads an object of a kind that means something.
func (p *parser) known(out *parsed, k kind, source mesh.Source, node *yaml.Node) {
	object := k.fresh()
	f := filler{types: p.types}
	if k.metadataOnly {
		if metadata := child(node, "metadata"); metadata != nil {
			f.push("metadata")
			f.fill(metadata, reflect.ValueOf(object).Elem().FieldByName("ObjectMeta"))
			f.pop()
		}
		if partial, ok := object.(*metav1.PartialObjectMetadata); ok {
			partial.APIVersion, partial.Kind = source.APIVersion, source.Kind
		}
	} else {
		f.fill(node, reflect.ValueOf(object).Elem())
	}
	switch {
	case k.clusterScoped:
		object.SetNamespace("")
	case object.GetNamespace() == "":
		object.SetNamespace(p.namespace)
	}
	source.Namespace, source.Name = object.GetNamespace(), object.GetName()
	f.checkName(node, object)
	for _, x := range f.faults {
		out.add(source.File, source, x)
	}
	if object.GetName() == "" {
		out.broken = true
		return
	}
	e := entry{
		object:  decode.Object{Object: object, APIVersion: source.APIVersion, File: source.File, Line: source.Line},
		refused: f.failed(),
	}
	var ok bool
	if e.id, ok = decode.IDOf(object); !ok {
		out.skip(source.Kind)
		return
	}
	out.entries = append(out.entries, e)
}

func (f *filler) checkName(node *yaml.Node, object metav1.Object) {
	for _, part := range []struct {
		field, value string
		check        func(string) []string
	}{
		{"metadata.name", object.GetName(), validation.IsDNS1123Subdomain},
		{"metadata.namespace", object.GetNamespace(), validation.IsDNS1123Label},
	} {
		if part.value == "" && part.field == "metadata.namespace" || len(part.check(part.value)) == 0 {
			continue
		}
		x := fault{
			severity: mesh.SeverityError,
			reason:   mesh.ReasonInvalid,
			field:    part.field,
			value:    cut(part.value),
			line:     node.Line,
			message:  fmt.Sprintf("%s is not a name that Kubernetes allows: %s", part.field, part.check(part.value)[0]),
			mend:     "choose another name",
		}
		if part.value == "" {
			x.message, x.mend = part.field+" is missing", "give the object a name"
		}
		f.faults = append(f.faults, x)
	}
}

func (p *parsed) add(file string, source mesh.Source, x fault) {
	source.File, source.Line = file, x.line
	if source.Kind == "" {
		source.Kind, source.Name = kindFile, file
	}
	p.findings = append(p.findings, mesh.Finding{
		Severity: x.severity,
		Reason:   x.reason,
		Object:   source,
		Field:    x.field,
		Value:    x.value,
		Message:  x.message,
		Mend:     x.mend,
	})
}

// lineOf finds the line in an error of the YAML library, which is within the document.
func lineOf(err error) (line int, message string) {
	message = oneLine(strings.TrimPrefix(err.Error(), "yaml: "))
	found := regexp.MustCompile(`^line (\d+): `).FindStringSubmatch(message)
	if found == nil {
		return 1, message
	}
	line, _ = strconv.Atoi(found[1])
	return line, message[len(found[0]):]
}

func (p *parsed) unreadable(name string, before int, err error) {
	p.broken = true
	line, message := lineOf(err)
	if typed, ok := errors.AsType[*yaml.TypeError](err); ok {
		message = oneLine(strings.Join(typed.Errors, "; "))
	}
	p.add(name, mesh.Source{}, fault{
		severity: mesh.SeverityError,
		reason:   mesh.ReasonUnreadable,
		line:     before + line,
		message:  "this is not YAML or JSON that can be read: " + message,
		mend:     "correct the document; until then what the file held before stays in force",
	})
}

// child is the value under a key of a mapping, nil for none.
func child(node *yaml.Node, key string) *yaml.Node {
	for node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	if node.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == key {
			return node.Content[i+1]
		}
	}
	return nil
}

// text is the scalar at a path of keys, empty for none.
func text(node *yaml.Node, keys ...string) string {
	for _, key := range keys {
		if node = child(node, key); node == nil {
			return ""
		}
	}
	if node.Kind != yaml.ScalarNode || isNull(node) {
		return ""
	}
	return node.Value
}
