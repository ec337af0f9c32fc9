// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"k8s.io/client-go/tools/leaderelection"
)

// LeaseName is the Lease by which replicas agree on the one that writes.
const LeaseName = "appmesh-controller-leader"

// The times of the election: a leader that is cut off stops writing after renewal, and another begins after lease at the latest.
const (
	leaseDuration = 15 * time.Second
	leaseRenewal  = 10 * time.Second
	leaseRetry    = 2 * time.Second
)

// lead runs work whenever this replica is the leader. A replica that loses the lease goes on with everything else, and stands again.
func (c *Controller) lead(ctx context.Context, work func(context.Context)) error {
	if !c.opts.LeaderElection {
		work(ctx)
		return nil
	}
	lock, err := c.newLease(ctx)
	if err != nil {
		return nil //nolint:nilerr // ctx has ended, which is a good end
	}
	for ctx.Err() == nil {
		elector, err := leaderelection.NewLeaderElector(leaderelection.LeaderElectionConfig{
			Lock: lock, LeaseDuration: leaseDuration, RenewDeadline: leaseRenewal, RetryPeriod: leaseRetry, ReleaseOnCancel: true, Name: LeaseName,
			Callbacks: leaderelection.LeaderCallbacks{
				OnStartedLeading: func(ctx context.Context) {
					c.opts.Logger.Info("leading: this replica writes status", slog.String("identity", c.opts.Identity))
					work(ctx)
				},
				OnStoppedLeading: func() { c.opts.Logger.Info("not leading", slog.String("identity", c.opts.Identity)) },
			},
		})
		if err != nil {
			return fmt.Errorf("leader election: %w", err)
		}
		elector.Run(ctx)
	}
	return nil
}
