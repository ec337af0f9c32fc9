// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// fill sets everything that v can reach to something other than zero, lists to two members.
func fill(v reflect.Value) {
	if v.Type() == reflect.TypeFor[netip.Addr]() {
		v.Set(reflect.ValueOf(netip.MustParseAddr("10.0.0.1")))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(v.Elem())
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(v.Index(0))
		fill(v.Index(1))
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(field)
		}
	case reflect.String:
		v.SetString("x")
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(7)
	default:
		panic("a kind of field that no comparison knows yet: " + v.Type().String())
	}
}

// changes calls changed once for each single value that v reaches, while that value differs from what it was: another string or number, a pointer that is nil, a list that is shorter.
func changes(v reflect.Value, path string, changed func(path string)) {
	with := func(other reflect.Value) {
		before := reflect.New(v.Type()).Elem()
		before.Set(v)
		v.Set(other)
		changed(path)
		v.Set(before)
	}
	if v.Type() == reflect.TypeFor[netip.Addr]() {
		with(reflect.ValueOf(netip.MustParseAddr("10.0.0.2")))
		with(reflect.ValueOf(netip.MustParseAddr("::ffff:10.0.0.1")))
		with(reflect.ValueOf(netip.MustParseAddr("fe80::1%eth0")))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		with(reflect.Zero(v.Type()))
		changes(v.Elem(), path, changed)
	case reflect.Slice:
		with(v.Slice(0, 1))
		for i := range v.Len() {
			changes(v.Index(i), path+"[]", changed)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			changes(v.Field(i), path+"."+v.Type().Field(i).Name, changed)
		}
	case reflect.String:
		with(reflect.ValueOf("y").Convert(v.Type()))
		with(reflect.ValueOf("").Convert(v.Type()))
	case reflect.Bool:
		with(reflect.ValueOf(false).Convert(v.Type()))
	case reflect.Int32, reflect.Int64:
		with(reflect.ValueOf(8).Convert(v.Type()))
	default:
		panic("a kind of field that fill does not set: " + v.Type().String())
	}
}

func TestViewsThatDifferInAnyFieldAreNotEqual(t *testing.T) {
	t.Parallel()
	view, other := new(mesh.View), new(mesh.View)
	fill(reflect.ValueOf(view).Elem())
	fill(reflect.ValueOf(other).Elem())
	if !view.Equal(other) {
		t.Fatal("a View does not equal another with the same values")
	}
	count := 0
	changes(reflect.ValueOf(view).Elem(), "View", func(path string) {
		count++
		if view.Equal(other) || other.Equal(view) {
			t.Errorf("%s: a View that differs there is equal", path)
		}
	})
	if !view.Equal(other) {
		t.Error("the View was not put back")
	}
	if count < 500 {
		t.Errorf("only %d changes were tried", count)
	}
}

func TestViewsOfOneModelAreEqual(t *testing.T) {
	t.Parallel()
	a, _ := djApp().view(t, "dj")
	b, _ := djApp().view(t, "dj")
	if !a.Equal(b) {
		t.Error("two Views of the same model differ")
	}
	c, _ := djApp().with(httpRoute("jazz-router", "jazz-route", "/", "jazz-v1=89", "jazz-v2=11")).view(t, "dj")
	if a.Equal(c) {
		t.Error("another weight gives an equal View")
	}
}
