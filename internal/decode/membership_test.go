// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta1"
	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

func meta(namespace, name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: namespace, Name: name}
}

func node(name, app string) *v1beta2.VirtualNode {
	n := &v1beta2.VirtualNode{ObjectMeta: meta("shop", name)}
	n.Spec.MeshRef = &v1beta2.MeshReference{Name: "m"}
	if app != "" {
		n.Spec.PodSelector = selector("app", app)
	}
	return n
}

func pod(mutate func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta("shop", "p")}
	if mutate != nil {
		mutate(p)
	}
	return p
}

func labelled(app string) *corev1.Pod {
	return pod(func(p *corev1.Pod) { p.Labels = map[string]string{"app": app} })
}

func made(kind, owner string, labels map[string]string) *corev1.Pod {
	return pod(func(p *corev1.Pod) {
		p.Labels = labels
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: owner, Controller: new(true)}}
	})
}

type membershipCase struct {
	pod           *corev1.Pod
	members, idle string
}

// TestAPodBelongsToWhatSelectsOrOwnsIt asks about pods as the webhook sees them, before they exist, and as the cluster has them.
func TestAPodBelongsToWhatSelectsOrOwnsIt(t *testing.T) {
	t.Parallel()
	old := &v1beta1.VirtualNode{ObjectMeta: meta("shop", "metal"), Spec: v1beta1.VirtualNodeSpec{MeshName: "m"}}
	other := &v1beta1.VirtualNode{ObjectMeta: meta("shop", "jazz"), Spec: v1beta1.VirtualNodeSpec{MeshName: "m"}}
	gateway := &v1beta2.VirtualGateway{ObjectMeta: meta("shop", "front")}
	gateway.Spec.MeshRef, gateway.Spec.PodSelector = &v1beta2.MeshReference{Name: "m"}, selector("app", "front")
	homeless := &v1beta2.VirtualNode{ObjectMeta: meta("shop", "homeless")}
	homeless.Spec.PodSelector = selector("app", "homeless")
	first, second := node("first", "taken"), node("second", "taken-too")
	first.Spec.AWSName, second.Spec.AWSName = new("taken"), new("taken")
	first.CreationTimestamp, second.CreationTimestamp = metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	deployment := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{Kind: "Deployment", APIVersion: "apps/v1"}, ObjectMeta: meta("shop", "metal")}
	objects := []metav1.Object{
		&v1beta2.Mesh{ObjectMeta: meta("", "m")}, node("api", "api"), node("unselected", ""), node("twin-a", "twin"), node("twin-b", "twin"),
		node("both", "front-too"), old, other, gateway, homeless, first, second, deployment,
	}
	cases := map[string]membershipCase{
		"a label of the podSelector":                     {pod: labelled("api"), members: "virtualnode/api"},
		"no label at all":                                {pod: pod(nil)},
		"the labels of two nodes":                        {pod: labelled("twin"), members: "virtualnode/twin-a, virtualnode/twin-b"},
		"the labels of a gateway":                        {pod: labelled("front"), members: "virtualgateway/front"},
		"the labels of a node in no mesh":                {pod: labelled("homeless"), idle: "virtualnode/homeless"},
		"the labels of a node whose name another has":    {pod: labelled("taken-too"), idle: "virtualnode/second"},
		"the labels of the node that has the name":       {pod: labelled("taken"), members: "virtualnode/first"},
		"a ReplicaSet of a Deployment named as the node": {pod: made("ReplicaSet", "metal-5d4f", map[string]string{"pod-template-hash": "5d4f"}), members: "virtualnode/metal"},
		"a ReplicaSet whose pods lack the hash":          {pod: made("ReplicaSet", "metal-5d4f", nil), members: "virtualnode/metal"},
		"a StatefulSet named as the node":                {pod: made("StatefulSet", "metal", nil), members: "virtualnode/metal"},
		"a Deployment named as a v1beta2 node":           {pod: made("ReplicaSet", "api-5d4f", map[string]string{"pod-template-hash": "5d4f"})},
		"the annotation of a v1beta1 node's name": {
			pod: pod(func(p *corev1.Pod) { p.Annotations = map[string]string{"appmesh.k8s.aws/virtualNode": "jazz-shop"} }), members: "virtualnode/jazz",
		},
		"an annotation of another mesh": {
			pod: pod(func(p *corev1.Pod) {
				p.Annotations = map[string]string{"appmesh.k8s.aws/virtualNode": "jazz", "appmesh.k8s.aws/mesh": "n"}
			}),
		},
		"the variable of a sidecar written by hand": {
			pod: pod(func(p *corev1.Pod) {
				p.Spec.Containers = []corev1.Container{{Env: []corev1.EnvVar{{Name: "APPMESH_VIRTUAL_NODE_NAME", Value: "mesh/m/virtualNode/jazz-shop"}}}}
			}),
			members: "virtualnode/jazz",
		},
	}
	var given []decode.Object
	incremental := decode.New(decode.Options{})
	for _, object := range objects {
		given = append(given, decode.Object{Object: object})
		incremental.Set(decode.Object{Object: object})
	}
	roster := decode.NewRoster(decode.Options{}, "shop", given)
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := roster.Membership(c.pod)
			if diff := cmp.Diff([]string{c.members, c.idle}, []string{decode.Names(got.Members), decode.Names(got.Idle)}); diff != "" {
				t.Errorf("members and idle differ (-want +got):\n%s", diff)
			}
			for _, m := range got.Members {
				if !got.Has(m.Key) || got.Has(mesh.Key{}) {
					t.Errorf("Has does not tell the member %v from none", m.Key)
				}
			}
			for _, m := range got.Idle {
				if m.Idle == "" {
					t.Errorf("%s is idle without a reason", m)
				}
			}
		})
	}
	sameAsTheModel(t, incremental, roster, cases)
}

// sameAsTheModel compares the roster's answers with the workloads that the decoder makes of the same pods.
func sameAsTheModel(t *testing.T, d *decode.Decoder, roster *decode.Roster, cases map[string]membershipCase) {
	t.Helper()
	d.Flush()
	for name, c := range cases {
		p := c.pod
		d.Set(decode.Object{Object: p})
		var workloads, want []string
		for _, o := range d.Flush().Set {
			if w, ok := o.(*mesh.Workload); ok {
				workloads = append(workloads, w.NodeName)
			}
		}
		for _, m := range roster.Membership(p).Members {
			if m.Key.Kind == mesh.KindVirtualNode {
				want = append(want, m.Key.Name)
			}
		}
		if diff := cmp.Diff(want, workloads); diff != "" {
			t.Errorf("%s: the decoder says otherwise (-roster +decoder):\n%s", name, diff)
		}
		id, _ := decode.IDOf(p)
		d.Delete(id)
		d.Flush()
	}
}

func TestARosterKnowsWhatItsNamespaceHolds(t *testing.T) {
	t.Parallel()
	old := &v1beta1.VirtualNode{ObjectMeta: meta("shop", "metal"), Spec: v1beta1.VirtualNodeSpec{MeshName: "m"}}
	elsewhere := node("api", "api")
	elsewhere.Namespace = "elsewhere"
	for name, c := range map[string]struct {
		objects           []metav1.Object
		empty, onlyLegacy bool
	}{
		"nothing":                     {empty: true},
		"a node of another namespace": {objects: []metav1.Object{elsewhere}, empty: true},
		"v1beta1 nodes alone":         {objects: []metav1.Object{old}, onlyLegacy: true},
		"both":                        {objects: []metav1.Object{old, node("api", "api")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var given []decode.Object
			for _, o := range c.objects {
				given = append(given, decode.Object{Object: o})
			}
			roster := decode.NewRoster(decode.Options{}, "shop", given)
			if roster.Empty() != c.empty || roster.OnlyLegacy() != c.onlyLegacy {
				t.Errorf("Empty %v, OnlyLegacy %v; want %v, %v", roster.Empty(), roster.OnlyLegacy(), c.empty, c.onlyLegacy)
			}
		})
	}
}

// BenchmarkRoster finds what pods can belong to in a namespace of a thousand nodes.
func BenchmarkRoster(b *testing.B) {
	objects := []decode.Object{{Object: &v1beta2.Mesh{ObjectMeta: meta("", "m")}}}
	for i := range 1000 {
		name := fmt.Sprintf("node-%d", i)
		objects = append(objects, decode.Object{Object: node(name, name)})
	}
	for b.Loop() {
		got := decode.NewRoster(decode.Options{}, "shop", objects).Membership(labelled("node-7"))
		if !strings.HasSuffix(decode.Names(got.Members), "node-7") {
			b.Fatal(got)
		}
	}
}
