// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// ownedLease is the Lease of the election, which goes when the controller's Deployment does.
type ownedLease struct {
	*resourcelock.LeaseLock

	// deployment finds the Deployment; nil for none.
	deployment func(context.Context) (*metav1.OwnerReference, error)
	// owned says that the Deployment was there when the election began.
	owned bool
}

func (c *Controller) newLease(ctx context.Context) (*ownedLease, error) {
	l := &ownedLease{
		LeaseLock: &resourcelock.LeaseLock{
			LeaseMeta:  metav1.ObjectMeta{Namespace: c.opts.Namespace, Name: LeaseName},
			Client:     c.clients.CoordinationV1(),
			LockConfig: resourcelock.ResourceLockConfig{Identity: c.opts.Identity},
		},
		deployment: c.deployment,
	}
	for ctx.Err() == nil {
		owner, err := l.deployment(ctx)
		if err == nil {
			l.owned = owner != nil
			return l, nil
		}
		c.opts.Logger.Warn("the election waits for the API server", "error", err.Error())
		select {
		case <-ctx.Done():
		case <-c.opts.Clock.After(leaseRetry):
		}
	}
	return nil, ctx.Err()
}

// deployment is the controller's own, as an owner; nil where there is none, as on a developer's machine.
func (c *Controller) deployment(ctx context.Context) (*metav1.OwnerReference, error) {
	if c.opts.Deployment == "" {
		return nil, nil //nolint:nilnil // no owner is as good an answer as one
	}
	d, err := c.clients.AppsV1().Deployments(c.opts.Namespace).Get(ctx, c.opts.Deployment, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, fmt.Errorf("reading the Deployment %s/%s: %w", c.opts.Namespace, c.opts.Deployment, err)
	}
	return &metav1.OwnerReference{APIVersion: "apps/v1", Kind: "Deployment", Name: d.Name, UID: d.UID}, nil
}

// Create makes the Lease. A replica that outlives its Deployment for a moment makes none: nobody would take it away.
func (l *ownedLease) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	owner, err := l.deployment(ctx)
	if err != nil {
		return err
	}
	if owner == nil && l.owned {
		return fmt.Errorf("the Deployment is gone, so the Lease %s/%s is not made again", l.LeaseMeta.Namespace, l.LeaseMeta.Name)
	}
	lease := &coordinationv1.Lease{ObjectMeta: l.LeaseMeta, Spec: resourcelock.LeaderElectionRecordToLeaseSpec(&record)}
	if owner != nil {
		lease.OwnerReferences = []metav1.OwnerReference{*owner}
	}
	if _, err := l.Client.Leases(l.LeaseMeta.Namespace).Create(ctx, lease, metav1.CreateOptions{}); err != nil {
		return err
	}
	_, _, err = l.Get(ctx) // the lock updates what it has read
	return err
}
