// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/tulle-mesh/tulle/api/v1beta1"
	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

func named(name string) metav1.ObjectMeta { return metav1.ObjectMeta{Name: name, Namespace: "prod"} }

func legacyNode(name string, port int64) *v1beta1.VirtualNode {
	return &v1beta1.VirtualNode{ObjectMeta: named(name), Spec: v1beta1.VirtualNodeSpec{
		MeshName:  "m",
		Listeners: []v1beta1.Listener{{PortMapping: v1beta2.LegacyPortMapping{Port: port, Protocol: "http"}}},
	}}
}

// start is a decoder with a mesh, three nodes and a service, flushed.
func start(t *testing.T) *decode.Decoder {
	t.Helper()
	d := decode.New(decode.Options{})
	for _, o := range []metav1.Object{
		&v1beta1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "m"}},
		legacyNode("a", 80), legacyNode("b", 80), legacyNode("c", 80),
		&v1beta1.VirtualService{ObjectMeta: named("s"), Spec: v1beta1.VirtualServiceSpec{
			MeshName: "m",
			Routes: []v1beta2.LegacyRoute{{Name: "r", HTTP: &v1beta2.LegacyHTTPRoute{Match: v1beta2.LegacyHTTPRouteMatch{Prefix: "/"}, Action: v1beta2.LegacyRouteAction{
				WeightedTargets: []v1beta2.LegacyWeightedTarget{{VirtualNodeName: "a", Weight: 1}, {VirtualNodeName: "b", Weight: 1}},
			}}}},
		}},
		&discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{
			Name: "e", Namespace: "prod", Labels: map[string]string{discoveryv1.LabelServiceName: "a"},
		}},
		&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "prod", Annotations: map[string]string{"appmesh.k8s.aws/virtualNode": "b"}}},
	} {
		d.Set(decode.Object{Object: o})
	}
	if changes := d.Flush(); len(changes.Findings) != 0 || len(changes.Set) != 9 {
		t.Fatalf("start: %d objects, findings %v", len(changes.Set), changes.Findings)
	}
	return d
}

func TestAChangeReachesWhatDependsOnItAndNothingElse(t *testing.T) {
	t.Parallel()
	router := mesh.RouterKey("m", "s-prod")
	for name, test := range map[string]struct {
		change  func(d *decode.Decoder)
		set     []mesh.Key
		removed []mesh.Key
	}{
		"a node's first listener is that of the router derived from it": {
			change: func(d *decode.Decoder) { d.Set(decode.Object{Object: legacyNode("a", 81)}) },
			set:    []mesh.Key{mesh.NodeKey("m", "a-prod"), router},
		},
		"another target's listener is nothing to the router": {
			change: func(d *decode.Decoder) { d.Set(decode.Object{Object: legacyNode("b", 81)}) },
			set:    []mesh.Key{mesh.NodeKey("m", "b-prod")},
		},
		"an endpoint slice is itself alone": {
			change: func(d *decode.Decoder) {
				d.Set(decode.Object{Object: &discoveryv1.EndpointSlice{
					ObjectMeta: metav1.ObjectMeta{Name: "e", Namespace: "prod", Labels: map[string]string{discoveryv1.LabelServiceName: "a"}},
					Endpoints:  []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}}},
				}})
			},
			set: []mesh.Key{mesh.EndpointSliceKey("prod", "a", "e")},
		},
		"the same object again is no change": {
			change: func(d *decode.Decoder) { d.Set(decode.Object{Object: legacyNode("a", 80)}) },
		},
		"a node that goes takes its workloads and targets along": {
			change:  func(d *decode.Decoder) { d.Delete(decode.ID{Kind: "VirtualNode", Namespace: "prod", Name: "b"}) },
			set:     []mesh.Key{mesh.RouteKey("m", "s-prod", "r")},
			removed: []mesh.Key{mesh.NodeKey("m", "b-prod"), mesh.WorkloadKey("m", "b-prod", "prod", "p")},
		},
		"a node that no one refers to goes alone": {
			change:  func(d *decode.Decoder) { d.Delete(decode.ID{Kind: "VirtualNode", Namespace: "prod", Name: "c"}) },
			removed: []mesh.Key{mesh.NodeKey("m", "c-prod")},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := start(t)
			test.change(d)
			changes := d.Flush()
			var set []mesh.Key
			for _, o := range changes.Set {
				set = append(set, o.Key())
			}
			if diff := cmp.Diff(test.set, set); diff != "" {
				t.Errorf("set (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(test.removed, changes.Removed); diff != "" {
				t.Errorf("removed (-want +got):\n%s", diff)
			}
		})
	}
}

func TestANameThatIsGivenUpGoesToTheNextThatClaimsIt(t *testing.T) {
	t.Parallel()
	d := start(t)
	second := legacyNode("a-prod", 90)
	second.Name, second.Namespace = "a.prod", "zoo"
	d.Set(decode.Object{Object: second})
	conflict := d.Flush()
	if len(conflict.Set) != 0 || len(conflict.Removed) != 0 {
		t.Fatalf("the newcomer changed the model: %+v", conflict)
	}
	var reasons []mesh.Reason
	for _, list := range conflict.Findings {
		for _, f := range list {
			reasons = append(reasons, f.Reason)
		}
	}
	if !slices.Equal(reasons, []mesh.Reason{mesh.ReasonConflicted}) {
		t.Fatalf("reasons are %v, want one Conflicted", reasons)
	}
	d.Delete(decode.ID{Kind: "VirtualNode", Namespace: "prod", Name: "a"})
	after := d.Flush()
	for _, o := range after.Set {
		if o.Key() == mesh.NodeKey("m", "a-prod") && o.From().Namespace == "zoo" {
			return
		}
	}
	t.Errorf("the name did not move: %+v", after)
}
