// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube_test

import (
	"context"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// TestAnotherWriterIsNotFoughtWith has somebody undo each write at once. The waits between ours double, from five seconds on: in half a minute there is room for
// those after 0, 5, 15 and 35 seconds, and no more.
//
//nolint:paralleltest // the tests share a cluster, which a controller sees whole
func TestAnotherWriterIsNotFoughtWith(t *testing.T) {
	c := newCluster(t, "quarrel")
	start(t, nil)
	m := c.mesh()
	c.create(m)
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Second)
	defer cancel()
	undone := 0
	for ctx.Err() == nil {
		err := c.Get(ctx, client.ObjectKeyFromObject(m), m)
		if err == nil && len(m.Status.Conditions) > 0 {
			m.Status = v1beta2.MeshStatus{}
			if err = c.Status().Update(ctx, m); err == nil {
				undone++
			}
		}
		if err != nil && !apierrors.IsConflict(err) && ctx.Err() == nil {
			t.Fatal(err)
		}
		time.Sleep(20 * time.Millisecond)
	}
	if undone < 2 || undone > 4 {
		t.Errorf("the status was written %d times against somebody else; want it tried again, and ever more seldom", undone)
	}
}
