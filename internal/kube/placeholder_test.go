// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// withPlaceholders starts a controller with the rights that placeholders need and no others.
func withPlaceholders(t *testing.T, c *cluster, log *said) {
	t.Helper()
	config := restricted(t, c, "tulle-"+c.namespace)
	role := metav1.ObjectMeta{Name: "tulle-" + c.namespace + "-placeholders"}
	c.create(
		&rbacv1.ClusterRole{ObjectMeta: role, Rules: kube.PlaceholderRules()},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: role, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: config.Impersonate.UserName}},
		},
	)
	startPlaceholders(t, config, c, log, false)
}

func startPlaceholders(t *testing.T, config *rest.Config, c *cluster, log *said, flag bool) *replica {
	t.Helper()
	var r *replica
	ready := make(chan struct{})
	r = start(t, func(o *kube.Options) {
		o.Config, o.Namespace, o.LeaderElection, o.Placeholders = config, c.namespace, true, flag
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
		o.Snapshot = func() mesh.Reader { <-ready; return r.store.Snapshot() }
	})
	close(ready)
	return r
}

// marked is the test's mesh with the annotation.
func (c *cluster) marked(value string) *v1beta2.Mesh {
	m := c.mesh()
	m.Annotations = map[string]string{kube.PlaceholderAnnotation: value}
	return m
}

// looks waits for a Service to look so; "gone" for one that is not there.
func (c *cluster) looks(name, want string) *corev1.Service {
	c.t.Helper()
	service := &corev1.Service{}
	eventually(c.t, "Service "+name+" as "+want, func() (string, bool) {
		got := "gone"
		err := c.Get(c.t.Context(), client.ObjectKey{Namespace: c.namespace, Name: name}, service)
		if err == nil {
			got = look(service)
		} else if !apierrors.IsNotFound(err) {
			got = err.Error()
		}
		return got, got == want
	})
	return service
}

func look(s *corev1.Service) string {
	var ports []string
	for _, p := range s.Spec.Ports {
		ports = append(ports, p.Name)
	}
	text := strings.Join(ports, ",")
	if label, ok := s.Labels[kube.PlaceholderLabel]; ok {
		text += " of " + label
	}
	for _, o := range s.OwnerReferences {
		text += " owned by " + o.Kind + " " + o.Name
	}
	if len(s.Spec.Selector) > 0 {
		text += " with a selector"
	}
	return text
}

//nolint:paralleltest // the tests share a cluster, which a controller sees whole
func TestPlaceholderServicesComeAndGoWithTheirVirtualServices(t *testing.T) {
	c := newCluster(t, "holders")
	log := &said{}
	withPlaceholders(t, c, log)
	m, api := c.marked("enabled"), c.service("api", "api")
	full := c.service("full", "api")
	full.Spec.AWSName = new("Full." + c.namespace + ".svc.cluster.local.")
	long := c.service(strings.Repeat("x", 70), "api")
	long.Spec.AWSName = new("long." + c.namespace + ".svc")
	elsewhere, outside, bare := c.service("elsewhere", "api"), c.service("outside", "api"), c.service("bare", "api")
	elsewhere.Spec.AWSName, outside.Spec.AWSName, bare.Spec.AWSName = new("elsewhere.default"), new("www.example.com"), new("bare")
	taken := &corev1.Service{ObjectMeta: c.meta("taken"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Name: "mine", Port: 1}}}}
	c.create(taken, m, api, full, long, elsewhere, outside, bare, c.service("taken", "api"))
	node := c.node("api")
	c.create(node)
	got := c.looks("api", "http-8080 of api owned by VirtualService api")
	if got.Spec.Type != corev1.ServiceTypeClusterIP || got.Spec.ClusterIP == "" || got.Spec.ClusterIP == corev1.ClusterIPNone || got.Labels["app.kubernetes.io/managed-by"] != "appmesh-controller" {
		t.Errorf("the placeholder is %v, %v", got.Spec, got.Labels)
	}
	c.looks("full", "http-8080 of full owned by VirtualService full")
	c.looks("long", "http-8080 of "+strings.Repeat("x", 63)+" owned by VirtualService "+strings.Repeat("x", 70))
	c.looks("taken", "mine")

	router := &v1beta2.VirtualRouter{ObjectMeta: c.meta("r"), Spec: v1beta2.VirtualRouterSpec{Listeners: []v1beta2.VirtualRouterListener{
		{PortMapping: v1beta2.PortMapping{Port: 9000, Protocol: "tcp"}}, {PortMapping: v1beta2.PortMapping{Port: 80, Protocol: "http"}},
	}}}
	c.create(router)
	change(c, api, func() {
		api.Spec.Provider = &v1beta2.VirtualServiceProvider{VirtualRouter: &v1beta2.VirtualRouterServiceProvider{VirtualRouterRef: &v1beta2.VirtualRouterReference{Name: "r"}}}
	})
	c.looks("api", "http-80,tcp-9000 of api owned by VirtualService api")
	if err := c.Delete(t.Context(), got); err != nil {
		t.Fatal(err)
	}
	c.looks("api", "http-80,tcp-9000 of api owned by VirtualService api")

	if err := c.Delete(t.Context(), api); err != nil {
		t.Fatal(err)
	}
	c.looks("api", "gone")
	change(c, m, func() { m.Annotations[kube.PlaceholderAnnotation] = "disabled" })
	for _, name := range []string{"full", "long"} {
		c.looks(name, "gone")
	}
	c.looks("taken", "mine")
	var all corev1.ServiceList
	if err := c.List(t.Context(), &all, client.HasLabels{kube.PlaceholderLabel}); err != nil || len(all.Items) > 0 {
		t.Errorf("%d placeholders are left, %v", len(all.Items), err)
	}
	if text := log.String(); strings.Contains(text, "forbidden") || strings.Contains(text, "level=ERROR") {
		t.Errorf("the log complains:\n%s", text)
	}
}

// change writes an object as it is now with a change.
func change(c *cluster, o client.Object, f func()) {
	c.t.Helper()
	eventually(c.t, "a change", func() (string, bool) {
		if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			c.t.Fatal(err)
		}
		f()
		err := c.Update(c.t.Context(), o)
		return fmt.Sprint(err), err == nil
	})
}

//nolint:paralleltest // the tests share a cluster, which a controller sees whole
func TestPlaceholderServicesAreLetGoWhenSomebodyTakesThem(t *testing.T) {
	c := newCluster(t, "takers")
	log := &said{}
	withPlaceholders(t, c, log)
	m, a, b := c.marked("enabled"), c.service("a", "n"), c.service("b", "n")
	c.create(m, a, b, c.node("n"))
	selected := c.looks("a", "http-8080 of a owned by VirtualService a")
	labelled := c.looks("b", "http-8080 of b owned by VirtualService b")

	selected.Spec.Selector = map[string]string{"app": "a"}
	if err := c.Update(t.Context(), selected, client.FieldOwner("kubectl")); err != nil {
		t.Fatal(err)
	}
	c.looks("a", "http-8080 with a selector")
	labelled.Annotations = map[string]string{"team": "red"}
	if err := c.Update(t.Context(), labelled, client.FieldOwner("kubectl")); err != nil {
		t.Fatal(err)
	}
	got := c.looks("b", "http-8080")
	if _, ok := got.Labels["app.kubernetes.io/managed-by"]; ok || got.Annotations["team"] != "red" {
		t.Errorf("labels %v, annotations %v", got.Labels, got.Annotations)
	}
	// Neither goes with what it was made for, nor changes any more.
	change(c, m, func() { delete(m.Annotations, kube.PlaceholderAnnotation) })
	probe := c.service("probe", "n")
	c.create(probe)
	c.conditions(probe, "VirtualServiceActive=True Active")
	c.looks("a", "http-8080 with a selector")
	c.looks("b", "http-8080")
	if n := strings.Count(log.String(), "has become somebody's own"); n != 2 {
		t.Errorf("the log says %d times that a placeholder is let go, want 2:\n%s", n, log.String())
	}
	for _, s := range []*corev1.Service{selected, labelled} {
		if err := c.Delete(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
}

//nolint:paralleltest // the tests share a cluster, which a controller sees whole
func TestPlaceholderServicesAreWrittenOnceAndByTheFlagToo(t *testing.T) {
	c := newCluster(t, "resting")
	log := &said{}
	r := startPlaceholders(t, restricted(t, c, "tulle-resting"), c, log, true)
	unwanted := c.service("api", "api")
	m := c.marked("sometimes")
	c.create(m, unwanted, c.node("api"))
	eventually(t, "a word about the right that is missing", func() (string, bool) {
		return log.String(), strings.Contains(log.String(), "set the chart's value placeholderServices to annotated") && strings.Contains(log.String(), "value=sometimes")
	})
	if n := strings.Count(log.String(), "value=sometimes"); n != 1 {
		t.Errorf("the annotation is complained of %d times", n)
	}
	if n := strings.Count(log.String(), "does not allow them"); n != 1 {
		t.Errorf("the role is complained of %d times", n)
	}
	r.stop()
	startPlaceholders(t, server.Get(t).Config, c, &said{}, true)
	first := c.looks("api", "http-8080 of api owned by VirtualService api")
	// What changes without meaning writes nothing: neither a node that nobody calls, nor a Service beside it.
	c.create(c.node("other"), &corev1.Service{ObjectMeta: c.meta("other"), Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 1}}}})
	third := c.service("third", "other")
	c.create(third)
	c.looks("third", "http-8080 of third owned by VirtualService third")
	again := c.looks("api", "http-8080 of api owned by VirtualService api")
	if first.ResourceVersion != again.ResourceVersion {
		t.Errorf("the placeholder was written again: version %s after %s", again.ResourceVersion, first.ResourceVersion)
	}
	change(c, m, func() { m.Annotations[kube.PlaceholderAnnotation] = "disabled" })
	c.looks("api", "gone")
	c.looks("third", "gone")
}
