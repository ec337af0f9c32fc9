// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta1

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

const rounds = 400

// filler fills values of any type at random. It makes no list or map that is empty and not nil, for JSON knows none here.
type filler struct {
	*rand.Rand

	// full sets every pointer, list and map.
	full bool
}

func (f *filler) some() bool { return f.full || f.IntN(3) > 0 }

func (f *filler) fill(v reflect.Value) {
	switch v.Interface().(type) {
	case metav1.Time:
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(f.Int64N(1<<31), 0))))
		return
	case metav1.TypeMeta, metav1.ObjectMeta:
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		if f.some() {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem())
		}
	case reflect.Struct:
		for _, member := range v.Fields() {
			f.fill(member)
		}
	case reflect.Slice:
		if f.some() {
			v.Set(reflect.MakeSlice(v.Type(), 1+f.IntN(3), 4))
			for i := range v.Len() {
				f.fill(v.Index(i))
			}
		}
	case reflect.Map:
		if f.some() {
			v.Set(reflect.MakeMap(v.Type()))
			for range 1 + f.IntN(3) {
				key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
				f.fill(key)
				f.fill(value)
				v.SetMapIndex(key, value)
			}
		}
	case reflect.String:
		v.SetString(string(rune('a' + f.IntN(5))))
	case reflect.Int64:
		v.SetInt(f.Int64N(70000))
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	default:
		panic(fmt.Sprintf("the filler knows no %s", v.Kind()))
	}
}

func (f *filler) meta() metav1.ObjectMeta {
	names := []string{"a", "b", "a.b"}
	return metav1.ObjectMeta{
		Name: names[f.IntN(len(names))], Namespace: "ns", UID: "u", Generation: 3,
		Labels: map[string]string{"l": "v"}, Annotations: map[string]string{"n": "v"}, Finalizers: []string{"f"},
	}
}

// fillers yields fillers that are full at first and random from then on.
func fillers() iter.Seq2[uint64, *filler] {
	return func(yield func(uint64, *filler) bool) {
		for seed := range uint64(rounds) {
			if !yield(seed, &filler{Rand: rand.New(rand.NewPCG(seed, 7)), full: seed < 4}) {
				return
			}
		}
	}
}

func same(t *testing.T, seed uint64, want, got any) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("seed %d (-before +after):\n%s", seed, diff)
	}
}

func TestWhatIsWrittenInV1beta2SurvivesV1beta1InEveryField(t *testing.T) {
	t.Parallel()
	for seed, f := range fillers() {
		mesh := &v1beta2.Mesh{}
		f.fill(reflect.ValueOf(mesh).Elem())
		mesh.TypeMeta, mesh.ObjectMeta = typeMeta("Mesh"), f.meta()
		same(t, seed, mesh, MeshFrom(mesh).ToV1beta2())

		node := &v1beta2.VirtualNode{}
		f.fill(reflect.ValueOf(node).Elem())
		node.TypeMeta, node.ObjectMeta = typeMeta("VirtualNode"), f.meta()
		before := node.DeepCopy()
		// A backend that names nothing is one thing with one that names "".
		for i := range before.Spec.Backends {
			service := &before.Spec.Backends[i].VirtualService
			if before.Spec.MeshName != nil && service.VirtualServiceName == nil &&
				service.VirtualServiceRef == nil && service.VirtualServiceARN == nil {
				service.VirtualServiceName = new("")
			}
		}
		same(t, seed, before, VirtualNodeFrom(node).ToV1beta2())

		service := &v1beta2.VirtualService{}
		f.fill(reflect.ValueOf(service).Elem())
		service.TypeMeta, service.ObjectMeta = typeMeta("VirtualService"), f.meta()
		same(t, seed, service, VirtualServiceFrom(service).ToV1beta2())
	}
}

func TestWhatIsWrittenInV1beta1ComesBackInEveryFieldThatItHas(t *testing.T) {
	t.Parallel()
	for seed, f := range fillers() {
		mesh := &Mesh{}
		f.fill(reflect.ValueOf(mesh).Elem())
		mesh.TypeMeta, mesh.ObjectMeta = oldTypeMeta("Mesh"), f.meta()
		mesh.Spec.AWSName = nil
		same(t, seed, mesh, MeshFrom(mesh.ToV1beta2()))

		node := &VirtualNode{}
		f.fill(reflect.ValueOf(node).Elem())
		node.TypeMeta, node.ObjectMeta = oldTypeMeta("VirtualNode"), f.meta()
		node.Spec.WrittenIn, node.Spec.AWSName, node.Spec.MeshRef = "", nil, nil
		for i := range node.Spec.Backends {
			service := &node.Spec.Backends[i].VirtualService
			service.VirtualServiceRef, service.VirtualServiceARN = nil, nil
		}
		if discovery := node.Spec.ServiceDiscovery; discovery != nil && discovery.CloudMap != nil {
			discovery.CloudMap.AttributeList = nil
		}
		same(t, seed, withDefaults(node), VirtualNodeFrom(node.ToV1beta2()))

		service := &VirtualService{}
		f.fill(reflect.ValueOf(service).Elem())
		service.TypeMeta, service.ObjectMeta = oldTypeMeta("VirtualService"), f.meta()
		service.Spec.WrittenIn, service.Spec.AWSName, service.Spec.MeshRef = "", nil, nil
		same(t, seed, service, VirtualServiceFrom(service.ToV1beta2()))
	}
}

// withDefaults is a node whose health checks say what they mean.
func withDefaults(node *VirtualNode) *VirtualNode {
	out := node.DeepCopy()
	for i := range out.Spec.Listeners {
		check := out.Spec.Listeners[i].HealthCheck
		if check == nil {
			continue
		}
		check.HealthyThreshold = new(valueOr(check.HealthyThreshold, 10))
		check.IntervalMillis = new(valueOr(check.IntervalMillis, 30000))
		check.TimeoutMillis = new(valueOr(check.TimeoutMillis, 5000))
		check.UnhealthyThreshold = new(valueOr(check.UnhealthyThreshold, 2))
		check.Protocol = new(valueOr(check.Protocol, v1beta2.PortProtocol(out.Spec.Listeners[i].PortMapping.Protocol)))
	}
	return out
}

func TestAnythingInV1beta1MeansTheSameAfterTheWayToV1beta2AndBack(t *testing.T) {
	t.Parallel()
	for seed, f := range fillers() {
		mesh := &Mesh{}
		f.fill(reflect.ValueOf(mesh).Elem())
		mesh.TypeMeta, mesh.ObjectMeta = oldTypeMeta("Mesh"), f.meta()
		same(t, seed, mesh.ToV1beta2(), MeshFrom(mesh.ToV1beta2()).ToV1beta2())

		node := &VirtualNode{}
		f.fill(reflect.ValueOf(node).Elem())
		node.TypeMeta, node.ObjectMeta = oldTypeMeta("VirtualNode"), f.meta()
		node.Spec.WrittenIn = origin(f)
		same(t, seed, node.ToV1beta2(), VirtualNodeFrom(node.ToV1beta2()).ToV1beta2())

		service := &VirtualService{}
		f.fill(reflect.ValueOf(service).Elem())
		service.TypeMeta, service.ObjectMeta = oldTypeMeta("VirtualService"), f.meta()
		service.Spec.WrittenIn = origin(f)
		same(t, seed, service.ToV1beta2(), VirtualServiceFrom(service.ToV1beta2()).ToV1beta2())
	}
}

func origin(f *filler) Origin {
	if f.IntN(2) == 0 {
		return OriginV1beta2
	}
	return ""
}

func TestConversionSharesNoMemoryWithWhatItConverts(t *testing.T) {
	t.Parallel()
	for seed, f := range fillers() {
		node := &v1beta2.VirtualNode{}
		f.fill(reflect.ValueOf(node).Elem())
		node.ObjectMeta = f.meta()
		old := VirtualNodeFrom(node)
		before := old.DeepCopy()
		scramble(reflect.ValueOf(node).Elem())
		same(t, seed, before, old)

		stored := old.ToV1beta2()
		kept := stored.DeepCopy()
		scramble(reflect.ValueOf(old).Elem())
		same(t, seed, kept, stored)
	}
}

// scramble changes every string and number that a value reaches, in place.
func scramble(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			scramble(v.Elem())
		}
	case reflect.Struct:
		if _, ok := reflect.TypeAssert[metav1.Time](v); ok {
			return
		}
		for _, member := range v.Fields() {
			scramble(member)
		}
	case reflect.Slice:
		for i := range v.Len() {
			scramble(v.Index(i))
		}
	case reflect.Map:
		for _, key := range v.MapKeys() {
			v.SetMapIndex(key, reflect.Zero(v.Type().Elem()))
		}
	case reflect.String:
		v.SetString("scrambled")
	case reflect.Int64:
		v.SetInt(-1)
	default:
	}
}

func TestTheVersionOfAnObjectsOriginDecidesItsNames(t *testing.T) {
	t.Parallel()
	meta := metav1.ObjectMeta{Name: "dj", Namespace: "prod"}
	tests := map[string]struct {
		old  VirtualNodeSpec
		want v1beta2.VirtualNodeSpec
	}{
		"made in v1beta1: the mangled name and the mesh by name alone": {
			old:  VirtualNodeSpec{MeshName: "m"},
			want: v1beta2.VirtualNodeSpec{AWSName: new("dj-prod"), MeshRef: &v1beta2.MeshReference{Name: "m"}, MeshName: new("m")},
		},
		"made in v1beta2: what it carries, even where that is nothing": {
			old:  VirtualNodeSpec{WrittenIn: OriginV1beta2},
			want: v1beta2.VirtualNodeSpec{},
		},
		"made in v1beta2, and its mesh renamed in v1beta1: both names, so that admission sees the difference": {
			old:  VirtualNodeSpec{WrittenIn: OriginV1beta2, MeshName: "n", MeshRef: &v1beta2.MeshReference{Name: "m"}, AWSName: new("dj_prod")},
			want: v1beta2.VirtualNodeSpec{AWSName: new("dj_prod"), MeshRef: &v1beta2.MeshReference{Name: "m"}, MeshName: new("n")},
		},
		"made in v1beta1 under a name of its own choice": {
			old:  VirtualNodeSpec{MeshName: "m", AWSName: new("mine")},
			want: v1beta2.VirtualNodeSpec{AWSName: new("mine"), MeshRef: &v1beta2.MeshReference{Name: "m"}, MeshName: new("m")},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := &VirtualNode{ObjectMeta: meta, Spec: tt.old}
			if diff := cmp.Diff(tt.want, old.ToV1beta2().Spec); diff != "" {
				t.Errorf("v1beta2 differs (-want +got):\n%s", diff)
			}
		})
	}
}
