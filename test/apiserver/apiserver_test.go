// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package apiserver_test

import (
	"os"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/test/apiserver"
)

var server apiserver.Shared

func TestMain(m *testing.M) { os.Exit(server.Main(m)) }

func TestServesTheMeshsKinds(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	if err := v1beta2.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.Get(t).Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Create(t.Context(), &v1beta2.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "m"}}); err != nil {
		t.Fatal(err)
	}
	var list v1beta2.MeshList
	if err := c.List(t.Context(), &list); err != nil || len(list.Items) != 1 {
		t.Fatalf("%d meshes, %v; want the one that was made", len(list.Items), err)
	}
}
