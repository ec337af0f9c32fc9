// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube_test

import (
	"bytes"
	"log/slog"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/kube"
)

// said is a log that many goroutines write.
type said struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.Write(p)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

// restricted is the configuration of a user who may do what Rules say, and nothing else.
func restricted(t *testing.T, c *cluster, name string) *rest.Config {
	t.Helper()
	if err := rbacv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	everywhere, own := kube.Rules()
	named := metav1.ObjectMeta{Name: name}
	inside := metav1.ObjectMeta{Name: name, Namespace: c.namespace}
	user := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	c.create(
		&rbacv1.ClusterRole{ObjectMeta: named, Rules: everywhere},
		&rbacv1.ClusterRoleBinding{ObjectMeta: named, Subjects: user, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}},
		&rbacv1.Role{ObjectMeta: inside, Rules: own},
		&rbacv1.RoleBinding{ObjectMeta: inside, Subjects: user, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}},
	)
	config := rest.CopyConfig(server.Get(t).Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	return config
}

//nolint:paralleltest // the tests share a cluster, which a controller sees whole
func TestTheRulesAreEnough(t *testing.T) {
	c := newCluster(t, "rules")
	log := &said{}
	start(t, func(o *kube.Options) {
		o.Config, o.Namespace, o.LeaderElection = restricted(t, c, "tulle-test"), c.namespace, true
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
	})
	m, node := c.mesh(), c.node("web", "missing")
	m.Finalizers = []string{"finalizers.appmesh.k8s.aws/mesh-members"}
	c.create(m, node)
	c.conditions(m, "MeshActive=True Active")
	c.conditions(node, "ResolvedRefs=False RefNotFound")
	var events corev1.EventList
	eventually(t, "an event", func() (string, bool) {
		err := c.List(t.Context(), &events, client.InNamespace(c.namespace))
		return "none", err == nil && len(events.Items) > 0
	})
	if text := log.String(); strings.Contains(text, "forbidden") {
		t.Errorf("the controller was forbidden something:\n%s", text)
	}
	if err := c.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || len(m.Finalizers) > 0 {
		t.Errorf("finalizers %v, %v; want none", m.Finalizers, err)
	}
}
