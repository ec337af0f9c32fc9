// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/store"
	"github.com/tulle-mesh/tulle/test/apiserver"
)

// The tests share one API server, and so run one after the other: a controller sees the whole cluster.
var server apiserver.Shared

func TestMain(m *testing.M) {
	kube.LogTo(slog.New(slog.DiscardHandler))
	os.Exit(server.Main(m))
}

// replica is a controller that runs.
type replica struct {
	store *store.Memory
	stop  func()

	mu       sync.Mutex
	refusals []mesh.Finding
}

func (r *replica) refuse(list ...mesh.Finding) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.refusals = list
}

func start(t *testing.T, change func(*kube.Options)) *replica {
	t.Helper()
	options := mesh.Options{Region: "us-west-2", AccountID: "123456789012"}
	r := &replica{store: store.New(options)}
	synced := make(chan struct{})
	var once sync.Once
	o := kube.Options{
		Config: server.Get(t).Config, Namespace: "default", Identity: t.Name(), Mesh: options, Clock: clock.Real{}, Logger: slog.New(slog.DiscardHandler),
		Apply: func(_ context.Context, changes mesh.Changes) {
			r.store.Apply(changes)
			once.Do(func() { close(synced) })
		},
		Check: func() []mesh.Finding {
			now := r.store.Snapshot()
			var all []mesh.Finding
			for _, key := range now.Keys() {
				all = append(all, mesh.Check(now, key)...)
			}
			return all
		},
		Refusals: func(context.Context) []mesh.Finding {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.refusals
		},
	}
	if change != nil {
		change(&o)
	}
	c, err := kube.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- c.Run(ctx) }()
	r.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("the controller ended: %v", err)
		}
	})
	t.Cleanup(r.stop)
	select {
	case <-synced:
	case <-time.After(time.Minute):
		t.Fatal("the controller has not read the cluster")
	}
	return r
}

// cluster is the API server as a user sees it, with a namespace of the test's own. What the test makes is gone at its end.
type cluster struct {
	client.Client

	t         *testing.T
	namespace string
}

func newCluster(t *testing.T, namespace string) *cluster {
	t.Helper()
	scheme, err := kube.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Get(t).Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	k := &cluster{Client: c, t: t, namespace: namespace}
	err = c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace, Labels: map[string]string{"mesh": namespace}}})
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// create makes objects, and removes them when the test has ended.
func (c *cluster) create(objects ...client.Object) {
	c.t.Helper()
	for _, o := range objects {
		if err := c.Create(c.t.Context(), o); err != nil {
			c.t.Fatal(err)
		}
		c.t.Cleanup(func() {
			if err := c.Delete(context.Background(), o); err != nil && !apierrors.IsNotFound(err) {
				c.t.Error(err)
			}
		})
	}
}

// eventually waits for what is true to become so; what it waits for says itself what it sees.
func eventually(t *testing.T, what string, holds func() (string, bool)) {
	t.Helper()
	deadline := time.Now().Add(40 * time.Second) //nolint:forbidigo // a real server keeps real time
	for {
		seen, ok := holds()
		if ok {
			return
		}
		if time.Now().After(deadline) { //nolint:forbidigo // see above
			t.Fatalf("%s did not come about; seen last: %s", what, seen)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// conditions waits for an object to have conditions of this status and reason, each "Type=Status Reason".
func (c *cluster) conditions(object client.Object, want ...string) {
	c.t.Helper()
	eventually(c.t, fmt.Sprintf("%T %s with %v", object, object.GetName(), want), func() (string, bool) {
		if err := c.Get(c.t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err.Error(), false
		}
		list, observed := statusOf(object)
		have := map[string]bool{}
		seen := fmt.Sprintf("generation %d, observed %v:", object.GetGeneration(), observed)
		for _, condition := range list {
			text := fmt.Sprintf("%s=%s %s", condition.Type, condition.Status, *condition.Reason)
			have[text] = true
			seen += fmt.Sprintf("\n  %s: %s", text, *condition.Message)
		}
		for _, w := range want {
			if !have[w] {
				return seen, false
			}
		}
		return seen, observed != nil && *observed == object.GetGeneration()
	})
}

func statusOf(object client.Object) ([]v1beta2.Condition, *int64) {
	switch o := object.(type) {
	case *v1beta2.Mesh:
		return o.Status.Conditions, o.Status.ObservedGeneration
	case *v1beta2.VirtualNode:
		return o.Status.Conditions, o.Status.ObservedGeneration
	case *v1beta2.VirtualService:
		return o.Status.Conditions, o.Status.ObservedGeneration
	case *v1beta2.VirtualRouter:
		return o.Status.Conditions, o.Status.ObservedGeneration
	case *v1beta2.BackendGroup:
		return o.Status.Conditions, o.Status.ObservedGeneration
	}
	return nil, nil
}

func (c *cluster) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: c.namespace, Name: name}
}

// mesh selects the test's namespace and has its name.
func (c *cluster) mesh() *v1beta2.Mesh {
	return &v1beta2.Mesh{
		ObjectMeta: metav1.ObjectMeta{Name: c.namespace},
		Spec:       v1beta2.MeshSpec{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"mesh": c.namespace}}},
	}
}

// node serves HTTP on 8080 and calls services of its namespace.
func (c *cluster) node(name string, backends ...string) *v1beta2.VirtualNode {
	n := &v1beta2.VirtualNode{ObjectMeta: c.meta(name), Spec: v1beta2.VirtualNodeSpec{
		PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
		Listeners:   []v1beta2.Listener{{PortMapping: v1beta2.PortMapping{Port: 8080, Protocol: "http"}}},
	}}
	for _, backend := range backends {
		n.Spec.Backends = append(n.Spec.Backends, v1beta2.Backend{VirtualService: v1beta2.VirtualServiceBackend{
			VirtualServiceRef: &v1beta2.VirtualServiceReference{Name: backend},
		}})
	}
	return n
}

// service is answered by a node of its namespace.
func (c *cluster) service(name, node string) *v1beta2.VirtualService {
	return &v1beta2.VirtualService{ObjectMeta: c.meta(name), Spec: v1beta2.VirtualServiceSpec{Provider: &v1beta2.VirtualServiceProvider{
		VirtualNode: &v1beta2.VirtualNodeServiceProvider{VirtualNodeRef: &v1beta2.VirtualNodeReference{Name: node}},
	}}}
}
