// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube_test

import (
	"context"
	"maps"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/store"
)

//nolint:paralleltest // the tests share a cluster, which a controller sees whole
func TestStatusFollowsTheObjects(t *testing.T) {
	c := newCluster(t, "status")
	r := start(t, nil)
	m, web := c.mesh(), c.node("web", "api")
	c.create(web)
	c.conditions(web, "VirtualNodeActive=False NoMesh", "Accepted=False NoMesh", "Programmed=False NotAccepted")
	c.create(m)
	c.conditions(m, "MeshActive=True Active", "Accepted=True Accepted", "ResolvedRefs=True ResolvedRefs", "Programmed=True Programmed")
	if got, want := *m.Status.MeshARN, "arn:aws:appmesh:us-west-2:123456789012:mesh/status"; got != want {
		t.Errorf("the mesh's ARN is %q, want %q", got, want)
	}
	c.conditions(web, "VirtualNodeActive=True Active", "Accepted=True Accepted", "ResolvedRefs=False RefNotFound", "Programmed=True Programmed")
	if got, want := *web.Status.VirtualNodeARN, "arn:aws:appmesh:us-west-2:123456789012:mesh/status/virtualNode/web_status"; got != want {
		t.Errorf("the node's ARN is %q, want %q", got, want)
	}
	api := c.node("api")
	service := c.service("api", "api")
	c.create(api, service)
	c.conditions(web, "VirtualNodeActive=True Active", "ResolvedRefs=True ResolvedRefs")
	c.conditions(service, "VirtualServiceActive=True Active")

	r.refuse(mesh.Finding{
		Severity: mesh.SeverityError, Reason: mesh.ReasonRejected, Message: "Envoy refuses it",
		Object: mesh.Source{Kind: "VirtualNode", Namespace: c.namespace, Name: "api"},
	})
	c.conditions(api, "Programmed=False Rejected", "VirtualNodeActive=False Rejected", "Accepted=True Accepted")
	r.refuse()
	c.conditions(api, "Programmed=True Programmed", "VirtualNodeActive=True Active")

	var events corev1.EventList
	eventually(t, "an event of the refusal", func() (string, bool) {
		if err := c.List(t.Context(), &events, client.InNamespace(c.namespace)); err != nil {
			return err.Error(), false
		}
		var seen []string
		for i := range events.Items {
			e := &events.Items[i]
			seen = append(seen, e.InvolvedObject.Name+" "+e.Type+" "+e.Reason+": "+e.Message)
		}
		text := strings.Join(seen, "\n")
		return text, strings.Contains(text, "api Warning Rejected: Envoy refuses it") && strings.Contains(text, "api Normal Programmed")
	})
}

//nolint:paralleltest // the tests share a cluster, which a controller sees whole
func TestTwoObjectsThatClaimOneName(t *testing.T) {
	c := newCluster(t, "claims")
	start(t, nil)
	older, younger := c.node("older"), c.node("younger")
	older.Spec.AWSName, younger.Spec.AWSName = new("shared"), new("shared")
	c.create(c.mesh(), older)
	c.conditions(older, "VirtualNodeActive=True Active")
	// Creation times have whole seconds; of one age, the first by name would win, which is the older one too.
	c.create(younger)
	c.conditions(younger, "VirtualNodeActive=False Conflicted", "Accepted=False Conflicted", "Programmed=False NotAccepted")
	c.conditions(older, "VirtualNodeActive=True Active", "Accepted=True Accepted")
	if younger.Status.VirtualNodeARN != nil {
		t.Errorf("the node without a name has the ARN %s", *younger.Status.VirtualNodeARN)
	}
	for _, condition := range younger.Status.Conditions {
		if condition.Type == v1beta2.Accepted && !strings.Contains(*condition.Message, "claims/older") {
			t.Errorf("the message %q does not name the owner", *condition.Message)
		}
	}
	if n := writesWithin(t, c, 12*time.Second); n > 0 {
		t.Errorf("%d writes at rest, want none", n)
	}
	if err := c.Delete(t.Context(), older); err != nil {
		t.Fatal(err)
	}
	c.conditions(younger, "VirtualNodeActive=True Active", "Accepted=True Accepted")
}

// writesWithin counts the changes of virtual nodes in a stretch of time.
func writesWithin(t *testing.T, c *cluster, d time.Duration) int {
	t.Helper()
	watcher, err := client.NewWithWatch(server.Get(t).Config, client.Options{Scheme: c.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	var list v1beta2.VirtualNodeList
	if err := c.List(t.Context(), &list); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	watch, err := watcher.Watch(ctx, &v1beta2.VirtualNodeList{}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: list.ResourceVersion}})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	n := 0
	for {
		select {
		case _, ok := <-watch.ResultChan():
			if !ok {
				return n
			}
			n++
		case <-ctx.Done():
			return n
		}
	}
}

//nolint:paralleltest // the tests share a cluster, which a controller sees whole
func TestFinalizersOfTheOriginalsHoldNothing(t *testing.T) {
	c := newCluster(t, "finalizers")
	m, node, service := c.mesh(), c.node("web"), c.service("web", "web")
	m.Finalizers = []string{"finalizers.appmesh.k8s.aws/mesh-members", "finalizers.appmesh.k8s.aws/aws-appmesh-resources", "meshDeletion.finalizers.appmesh.k8s.aws"}
	node.Finalizers = []string{"finalizers.appmesh.k8s.aws/aws-appmesh-resources", "finalizers.appmesh.k8s.aws/aws-cloudmap-resources", "example.com/mine"}
	service.Finalizers = []string{"virtualServiceDeletion.finalizers.appmesh.k8s.aws"}
	c.create(m, node, service)
	if err := c.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	start(t, nil)
	gone(c, m)
	c.conditions(node, "VirtualNodeActive=False NoMesh")
	if diff := cmp.Diff([]string{"example.com/mine"}, node.Finalizers); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	node.Finalizers = nil
	if err := c.Update(t.Context(), node); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), service); err != nil {
		t.Fatal(err)
	}
	gone(c, service)
}

func gone(c *cluster, object client.Object) {
	c.t.Helper()
	eventually(c.t, "the end of "+object.GetName(), func() (string, bool) {
		err := c.Get(c.t.Context(), client.ObjectKeyFromObject(object), object)
		return "it is there", apierrors.IsNotFound(err)
	})
}

//nolint:paralleltest // the tests share a cluster, which a controller sees whole
func TestAnotherReplicaTakesOver(t *testing.T) {
	c := newCluster(t, "failover")
	first := start(t, func(o *kube.Options) { o.LeaderElection, o.Identity = true, "first" })
	m := c.mesh()
	c.create(m)
	c.conditions(m, "MeshActive=True Active")
	start(t, func(o *kube.Options) { o.LeaderElection, o.Identity = true, "second" })
	first.stop()
	node := c.node("late")
	c.create(node)
	c.conditions(node, "VirtualNodeActive=True Active")
}

// TestTheModelIsThatOfTheObjects is the decoder's property through a real API server: what many changes have led to equals what the objects say at once.
//
//nolint:paralleltest // the tests share a cluster, which a controller sees whole
func TestTheModelIsThatOfTheObjects(t *testing.T) {
	c := newCluster(t, "model")
	r := start(t, nil)
	m := c.mesh()
	c.create(m)
	for _, name := range []string{"a", "b", "c", "d"} {
		c.create(c.node(name, "a", "missing"), c.service(name, name), &corev1.Service{
			ObjectMeta: c.meta(name), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 8080}}},
		}, &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: name, Labels: map[string]string{"app": name}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: "app"}}},
		})
	}
	if err := c.Delete(t.Context(), c.node("b")); err != nil {
		t.Fatal(err)
	}
	changed := c.node("c", "d")
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(changed), changed); err != nil {
		t.Fatal(err)
	}
	changed.Spec.Listeners[0].PortMapping.Port = 9090
	if err := c.Update(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if err := c.Delete(t.Context(), c.service("d", "d")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the model of the objects", func() (string, bool) {
		diff := cmp.Diff(modelOf(t, c), contents(r.store.Snapshot()), cmpopts.EquateComparable(netip.Addr{}))
		return diff, diff == ""
	})
}

// modelOf is what all objects of the cluster mean, decoded at once.
func modelOf(t *testing.T, c *cluster) map[mesh.Key]mesh.Object {
	t.Helper()
	decoder := decode.New(decode.Options{})
	for _, list := range []client.ObjectList{
		&v1beta2.MeshList{}, &v1beta2.VirtualNodeList{}, &v1beta2.VirtualServiceList{}, &corev1.NamespaceList{}, &corev1.ServiceList{}, &corev1.PodList{},
	} {
		if err := c.List(t.Context(), list); err != nil {
			t.Fatal(err)
		}
		switch l := list.(type) {
		case *v1beta2.MeshList:
			set(decoder, l.Items)
		case *v1beta2.VirtualNodeList:
			set(decoder, l.Items)
		case *v1beta2.VirtualServiceList:
			set(decoder, l.Items)
		case *corev1.NamespaceList:
			set(decoder, l.Items)
		case *corev1.ServiceList:
			set(decoder, l.Items)
		case *corev1.PodList:
			set(decoder, l.Items)
		}
	}
	s := store.New(mesh.Options{})
	s.Apply(decoder.Flush())
	return contents(s.Snapshot())
}

func set[T any, P interface {
	*T
	metav1.Object
}](decoder *decode.Decoder, items []T) {
	for i := range items {
		decoder.Set(decode.Object{Object: P(&items[i])})
	}
}

func contents(s *store.Snapshot) map[mesh.Key]mesh.Object {
	return maps.Collect(func(yield func(mesh.Key, mesh.Object) bool) {
		for _, key := range s.Keys() {
			if !yield(key, s.Get(key)) {
				return
			}
		}
	})
}
