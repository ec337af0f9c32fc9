// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
)

// ParseObject reads an object of the App Mesh API from the form that Describe gives (MeshData, VirtualNodeData ...); metadata and status may be missing, and the ARN and the status are
// not read. Every field that the API does not have is an error that names its path, and all of them are gathered. The object is not validated: see Validate.
func ParseObject(kind Kind, text []byte) (Object, error) {
	o, spec := newObject(kind)
	if o == nil {
		return nil, fmt.Errorf("%q is no kind of the App Mesh API", shorten(string(kind)))
	}
	d := Description{Spec: spec}
	if err := parseStrict(text, &d, reflect.TypeFor[Description](), reflect.TypeOf(spec).Elem()); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	own, parent := d.names(kind)
	if stray := d.strayName(kind); stray != "" {
		return nil, fmt.Errorf("%s: unknown field %s", kind, stray)
	}
	assign(o, Meta{
		MeshName: d.MeshName, Name: own, Owner: d.Metadata.MeshOwner, UID: d.Metadata.UID, Version: d.Metadata.Version,
		CreatedAt: d.Metadata.CreatedAt.time(), UpdatedAt: d.Metadata.LastUpdatedAt.time(),
	}, parent)
	return o, nil
}

// ParseSpec reads the spec of an object of kind and returns it as *MeshSpec, *VirtualNodeSpec and so on, with errors as ParseObject's.
func ParseSpec(kind Kind, text []byte) (any, error) {
	_, spec := newObject(kind)
	if spec == nil {
		return nil, fmt.Errorf("%q is no kind of the App Mesh API", shorten(string(kind)))
	}
	if err := parseStrict(text, spec, reflect.TypeOf(spec).Elem(), nil); err != nil {
		return nil, fmt.Errorf("%s: %w", kind, err)
	}
	return spec, nil
}

func (e *Epoch) time() time.Time {
	if e == nil {
		return time.Time{}
	}
	return time.Time(*e)
}

// newObject makes an empty object and returns it with its spec.
func newObject(kind Kind) (Object, any) {
	switch kind {
	case KindMesh:
		o := new(Mesh)
		return o, &o.Spec
	case KindVirtualNode:
		o := new(VirtualNode)
		return o, &o.Spec
	case KindVirtualService:
		o := new(VirtualService)
		return o, &o.Spec
	case KindVirtualRouter:
		o := new(VirtualRouter)
		return o, &o.Spec
	case KindRoute:
		o := new(Route)
		return o, &o.Spec
	case KindVirtualGateway:
		o := new(VirtualGateway)
		return o, &o.Spec
	case KindGatewayRoute:
		o := new(GatewayRoute)
		return o, &o.Spec
	default:
		return nil, nil
	}
}

func assign(o Object, m Meta, parent string) {
	switch o := o.(type) {
	case *Mesh:
		o.Meta = m
	case *VirtualNode:
		o.Meta = m
	case *VirtualService:
		o.Meta = m
	case *VirtualRouter:
		o.Meta = m
	case *Route:
		o.Meta, o.RouterName = m, parent
	case *VirtualGateway:
		o.Meta = m
	case *GatewayRoute:
		o.Meta, o.GatewayName = m, parent
	}
}

// names are the object's own name and its parent's, as kind carries them.
func (d *Description) names(kind Kind) (own, parent string) {
	switch kind {
	case KindMesh:
		return d.MeshName, ""
	case KindVirtualNode:
		return d.VirtualNodeName, ""
	case KindVirtualService:
		return d.VirtualServiceName, ""
	case KindVirtualRouter:
		return d.VirtualRouterName, ""
	case KindRoute:
		return d.RouteName, d.VirtualRouterName
	case KindVirtualGateway:
		return d.VirtualGatewayName, ""
	case KindGatewayRoute:
		return d.GatewayRouteName, d.VirtualGatewayName
	default:
		return "", ""
	}
}

// strayName is a name that objects of kind do not have, or "".
func (d *Description) strayName(kind Kind) string {
	for _, n := range []struct {
		field, value string
		kinds        []Kind
	}{
		{"virtualNodeName", d.VirtualNodeName, []Kind{KindVirtualNode}},
		{"virtualServiceName", d.VirtualServiceName, []Kind{KindVirtualService}},
		{"virtualRouterName", d.VirtualRouterName, []Kind{KindVirtualRouter, KindRoute}},
		{"routeName", d.RouteName, []Kind{KindRoute}},
		{"virtualGatewayName", d.VirtualGatewayName, []Kind{KindVirtualGateway, KindGatewayRoute}},
		{"gatewayRouteName", d.GatewayRouteName, []Kind{KindGatewayRoute}},
	} {
		if n.value != "" && !slices.Contains(n.kinds, kind) {
			return n.field
		}
	}
	return ""
}

// parseStrict reads one JSON value into target, of type shape; spec is what stands behind an interface in it.
func parseStrict(text []byte, target any, shape, spec reflect.Type) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var loose any
	if err := decoder.Decode(&loose); err != nil {
		return fmt.Errorf("not JSON: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value")
	}
	if unknown := unknownFields(loose, shape, spec, ""); len(unknown) > 0 {
		return errors.Join(unknown...)
	}
	err := json.Unmarshal(text, target)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s is a JSON %s; want %s", cmp.Or(wrong.Field, "the whole value"), wrong.Value, jsonType(wrong.Type))
	}
	return err
}

// jsonType names what JSON has for a Go type.
func jsonType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "a list"
	case reflect.Struct, reflect.Map, reflect.Pointer:
		return "an object"
	case reflect.Float64:
		return "a number"
	default:
		return "a whole number that fits " + t.Kind().String()
	}
}

// unknownFields are the members of value that shape does not have, each as an error with its path.
func unknownFields(value any, shape, spec reflect.Type, path string) []error {
	for shape.Kind() == reflect.Pointer {
		shape = shape.Elem()
	}
	if shape.Kind() == reflect.Interface && spec != nil {
		shape = spec
	}
	var list []error
	switch v := value.(type) {
	case []any:
		if shape.Kind() == reflect.Slice {
			for i, entry := range v {
				list = append(list, unknownFields(entry, shape.Elem(), spec, at(path, i))...)
			}
		}
	case map[string]any:
		if shape.Kind() != reflect.Struct {
			return nil
		}
		fields := jsonFields(shape)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner := strings.TrimPrefix(path+"."+name, ".")
			if t, ok := fields[name]; ok {
				list = append(list, unknownFields(v[name], t, spec, inner)...)
			} else {
				list = append(list, fmt.Errorf("unknown field %s", cut(inner, maxMessage)))
			}
		}
	}
	return list
}

// jsonFields are the JSON names of a struct's fields.
func jsonFields(t reflect.Type) map[string]reflect.Type {
	fields := make(map[string]reflect.Type, t.NumField())
	for f := range t.Fields() {
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
			fields[name] = f.Type
		}
	}
	return fields
}
