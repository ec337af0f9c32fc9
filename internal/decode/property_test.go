// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode_test

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta1"
	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

func addresses() []cmp.Option {
	return []cmp.Option{cmp.Comparer(func(a, b netip.Addr) bool { return a == b })}
}

// TestIncrementalEqualsFromScratch makes random changes and compares, after each step, the sum of all that was reported
// with what a new decoder makes of the same objects.
func TestIncrementalEqualsFromScratch(t *testing.T) {
	t.Parallel()
	for seed := range uint64(16) {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			w := world{
				random:   rand.New(rand.NewPCG(seed, 7)),
				decoder:  decode.New(decode.Options{}),
				objects:  map[decode.ID]metav1.Object{},
				model:    map[mesh.Key]mesh.Object{},
				findings: map[mesh.Source][]mesh.Finding{},
			}
			for step := range 60 {
				w.step(t, step)
			}
		})
	}
}

type world struct {
	random   *rand.Rand
	decoder  *decode.Decoder
	objects  map[decode.ID]metav1.Object
	model    map[mesh.Key]mesh.Object
	findings map[mesh.Source][]mesh.Finding
}

func (w *world) step(t *testing.T, step int) {
	t.Helper()
	for range 1 + w.random.IntN(4) {
		o := w.anything()
		id, ok := decode.IDOf(o)
		if !ok {
			t.Fatalf("%T has no identity", o)
		}
		if w.random.IntN(4) == 0 {
			delete(w.objects, id)
			w.decoder.Delete(id)
			continue
		}
		w.objects[id] = o
		w.decoder.Set(decode.Object{Object: o})
	}
	changes := w.decoder.Flush()
	w.apply(t, step, changes)

	scratch := decode.New(decode.Options{})
	for _, o := range w.objects {
		scratch.Set(decode.Object{Object: o})
	}
	fresh := world{model: map[mesh.Key]mesh.Object{}, findings: map[mesh.Source][]mesh.Finding{}}
	fresh.apply(t, step, scratch.Flush())
	if diff := cmp.Diff(fresh.model, w.model, addresses()...); diff != "" {
		t.Fatalf("step %d: the model differs (-scratch +incremental):\n%s", step, diff)
	}
	if diff := cmp.Diff(fresh.findings, w.findings); diff != "" {
		t.Fatalf("step %d: the findings differ (-scratch +incremental):\n%s", step, diff)
	}
	if again := w.decoder.Flush(); !again.Empty() {
		t.Fatalf("step %d: a second flush reports %v", step, again)
	}
}

// apply does what a store does, and checks that nothing is reported that did not change.
func (w *world) apply(t *testing.T, step int, changes mesh.Changes) {
	t.Helper()
	for _, o := range changes.Set {
		if cmp.Equal(w.model[o.Key()], o, addresses()...) {
			t.Fatalf("step %d: %s is reported and did not change", step, o.Key())
		}
		w.model[o.Key()] = o
	}
	for _, key := range changes.Removed {
		if _, had := w.model[key]; !had {
			t.Fatalf("step %d: %s is removed and was not there", step, key)
		}
		delete(w.model, key)
	}
	for source, list := range changes.Findings {
		if slices.Equal(w.findings[source], list) {
			t.Fatalf("step %d: the findings of %s are reported and did not change", step, source)
		}
		if len(list) == 0 {
			delete(w.findings, source)
			continue
		}
		w.findings[source] = list
	}
}

func pick[T any](r *rand.Rand, list ...T) T { return list[r.IntN(len(list))] }

// anything makes an object out of few names, so that objects refer to each other, collide and go missing.
func (w *world) anything() metav1.Object {
	r := w.random
	meta := metav1.ObjectMeta{
		Name:      pick(r, "a", "b", "c"),
		Namespace: pick(r, "x", "y"),
		Labels:    map[string]string{"app": pick(r, "a", "b", "c")},
	}
	if r.IntN(3) == 0 {
		meta.CreationTimestamp = metav1.NewTime(time.Unix(1700000000+r.Int64N(3), 0))
	}
	switch r.IntN(12) {
	case 0:
		meta.Namespace = ""
		out := &v1beta2.Mesh{ObjectMeta: meta}
		out.Spec.AWSName = pick(r, nil, nil, new("a"))
		out.Spec.NamespaceSelector = pick(r, nil, selector("mesh", "a"), selector("mesh", "b"), &metav1.LabelSelector{})
		return out
	case 1:
		out := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meta.Namespace}}
		out.Labels = map[string]string{"mesh": pick(r, "a", "b", "c")}
		return out
	case 2, 3:
		return w.node(meta)
	case 4, 5:
		return w.service(meta)
	case 6:
		out := &v1beta2.VirtualRouter{ObjectMeta: meta}
		out.Spec.AWSName = pick(r, nil, nil, new("b"))
		for _, name := range []string{"one", "two", "one"}[:r.IntN(4)] {
			out.Spec.Routes = append(out.Spec.Routes, v1beta2.Route{Name: name, TCPRoute: &v1beta2.TCPRoute{
				Action: v1beta2.RouteAction{WeightedTargets: []v1beta2.WeightedTarget{
					{VirtualNodeRef: &v1beta2.VirtualNodeReference{Name: pick(r, "a", "b", "c"), Namespace: w.namespace()}, Weight: r.Int64N(3)},
					{VirtualNodeARN: new("arn:aws:appmesh:r:1:mesh/" + pick(r, "a", "b") + "/virtualNode/" + pick(r, "a_x", "b"))},
				}},
			}})
		}
		return out
	case 7:
		out := &v1beta2.VirtualGateway{ObjectMeta: meta}
		out.Spec.NamespaceSelector = pick(r, nil, &metav1.LabelSelector{}, selector("mesh", "a"))
		out.Spec.GatewayRouteSelector = pick(r, nil, selector("app", "a"))
		return out
	case 8:
		out := &v1beta2.GatewayRoute{ObjectMeta: meta}
		out.Spec.HTTPRoute = &v1beta2.HTTPGatewayRoute{Action: v1beta2.HTTPGatewayRouteAction{Target: v1beta2.GatewayRouteTarget{
			VirtualService: v1beta2.GatewayRouteVirtualService{VirtualServiceRef: &v1beta2.VirtualServiceReference{Name: pick(r, "a", "b")}},
		}}}
		return out
	case 9:
		out := &v1beta2.BackendGroup{ObjectMeta: meta}
		out.Spec.VirtualServices = []v1beta2.VirtualServiceReference{{Name: pick(r, "a", "b"), Namespace: w.namespace()}}
		return out
	case 10:
		return w.pod(meta)
	}
	return w.cluster(meta)
}

func (w *world) cluster(meta metav1.ObjectMeta) metav1.Object {
	r := w.random
	if r.IntN(2) == 0 {
		return &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{ClusterIP: pick(r, "None", "10.0.0.1", "nonsense")}}
	}
	meta.Labels = map[string]string{discoveryv1.LabelServiceName: pick(r, "", "a", "b")}
	return &discoveryv1.EndpointSlice{
		ObjectMeta: meta,
		Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{pick(r, "10.1.0.1", "10.1.0.2")}}},
	}
}

func (w *world) namespace() *string { return pick(w.random, nil, new("x"), new("y")) }

func selector(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func (w *world) node(meta metav1.ObjectMeta) metav1.Object {
	r := w.random
	if r.IntN(2) == 0 {
		out := &v1beta1.VirtualNode{ObjectMeta: meta}
		out.Spec.MeshName = pick(r, "a", "a", "a", "b", "")
		if r.IntN(2) == 0 {
			out.Spec.Listeners = []v1beta1.Listener{{PortMapping: v1beta2.LegacyPortMapping{Port: 1 + r.Int64N(2), Protocol: "http"}}}
		}
		out.Spec.Backends = []v1beta1.Backend{{VirtualService: v1beta1.VirtualServiceBackend{VirtualServiceName: pick(r, "a", "a.x", "b.y")}}}
		return out
	}
	out := &v1beta2.VirtualNode{ObjectMeta: meta}
	out.Spec.AWSName = pick(r, nil, nil, new("b"), new("a-x"))
	out.Spec.MeshRef = pick(r, nil, nil, &v1beta2.MeshReference{Name: "a"})
	out.Spec.PodSelector = pick(r, nil, selector("app", "a"), selector("app", "b"))
	if r.IntN(2) == 0 {
		out.Spec.Backends = []v1beta2.Backend{{VirtualService: v1beta2.VirtualServiceBackend{
			VirtualServiceRef: &v1beta2.VirtualServiceReference{Name: pick(r, "a", "b", "c"), Namespace: w.namespace()},
		}}}
	}
	if r.IntN(2) == 0 {
		out.Spec.BackendGroups = []v1beta2.BackendGroupReference{{Name: pick(r, "*", "a", "b"), Namespace: w.namespace()}}
	}
	return out
}

func (w *world) service(meta metav1.ObjectMeta) metav1.Object {
	r := w.random
	if r.IntN(2) == 0 {
		out := &v1beta1.VirtualService{ObjectMeta: meta}
		out.Spec.MeshName = pick(r, "a", "a", "a", "b", "")
		if r.IntN(2) == 0 {
			out.Spec.VirtualRouter = &v1beta2.LegacyVirtualRouter{Name: pick(r, "", "a", "b")}
		}
		for _, target := range []string{pick(r, "a", "b"), "b.x", "a-x"}[:r.IntN(4)] {
			out.Spec.Routes = append(out.Spec.Routes, v1beta2.LegacyRoute{Name: target, TCP: &v1beta2.LegacyTCPRoute{
				Action: v1beta2.LegacyRouteAction{WeightedTargets: []v1beta2.LegacyWeightedTarget{{VirtualNodeName: target, Weight: 1}}},
			}})
		}
		return out
	}
	out := &v1beta2.VirtualService{ObjectMeta: meta}
	out.Spec.AWSName = pick(r, nil, nil, new("a"), new("b"))
	switch r.IntN(3) {
	case 0:
		out.Spec.Provider = &v1beta2.VirtualServiceProvider{VirtualNode: &v1beta2.VirtualNodeServiceProvider{
			VirtualNodeRef: &v1beta2.VirtualNodeReference{Name: pick(r, "a", "b"), Namespace: w.namespace()},
		}}
	case 1:
		out.Spec.Provider = &v1beta2.VirtualServiceProvider{VirtualRouter: &v1beta2.VirtualRouterServiceProvider{
			VirtualRouterRef: &v1beta2.VirtualRouterReference{Name: pick(r, "a", "b"), Namespace: w.namespace()},
		}}
	}
	return out
}

func (w *world) pod(meta metav1.ObjectMeta) metav1.Object {
	r := w.random
	if r.IntN(2) == 0 {
		meta.OwnerReferences = []metav1.OwnerReference{{Kind: pick(r, "StatefulSet", "ReplicaSet"), Name: pick(r, "a", "b", "a-1"), Controller: new(true)}}
	}
	if r.IntN(4) == 0 {
		meta.Annotations = map[string]string{"appmesh.k8s.aws/virtualNode": pick(r, "a", "b-y")}
	}
	return &corev1.Pod{ObjectMeta: meta, Status: corev1.PodStatus{PodIP: pick(r, "", "10.1.0.1", "10.1.0.2")}}
}

// universe is a fixed set of objects that refer to each other.
func universe() []metav1.Object {
	w := world{random: rand.New(rand.NewPCG(1, 1))}
	seen := map[decode.ID]struct{}{}
	var list []metav1.Object
	for range 300 {
		o := w.anything()
		id, _ := decode.IDOf(o)
		if _, twice := seen[id]; !twice {
			seen[id] = struct{}{}
			list = append(list, o)
		}
	}
	return list
}
