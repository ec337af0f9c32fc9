// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"context"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Observe leads the changes of one of the watched kinds to a handler beside the controller's own, once the cluster serves the kind. Run must run meanwhile.
// What a handler is told is in Reader already.
func (c *Controller) Observe(ctx context.Context, object client.Object, handler toolscache.ResourceEventHandler) error {
	informer, err := c.informer(ctx, object)
	if err != nil {
		return err
	}
	if _, err := informer.AddEventHandler(handler); err != nil {
		return fmt.Errorf("watching %T: %w", object, err)
	}
	return nil
}
