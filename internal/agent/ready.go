// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"context"
	"errors"
	"fmt"
)

// firstConfig names the statistics that tell whether Envoy has configuration from the control plane.
const firstConfig = `^(cluster_manager\.cds|listener_manager\.lds)\.update_(success|rejected)$|^listener_manager\.total_listeners_active$`

// ready returns nil when Envoy serves with its first configuration applied, else what it still lacks.
func (a *agent) ready(ctx context.Context) error {
	if a.drain.draining() {
		return errors.New("draining")
	}
	state, live, err := a.admin.live(ctx)
	if err != nil {
		return err
	}
	if !live {
		return fmt.Errorf("envoy is %s%s", state, a.missing())
	}
	if a.config.ConfigFile != "" {
		return nil
	}
	numbers, err := a.admin.stats(ctx, firstConfig)
	if err != nil {
		return err
	}
	return configured(numbers)
}

// missing says what an Envoy that is not live waits for, as far as the agent can tell.
func (a *agent) missing() string {
	if a.relay != nil && !a.relay.Connected() {
		return ": the control plane does not answer"
	}
	return ""
}

// configured reads from Envoy's statistics whether clusters and listeners have come from the control plane. A response that Envoy refused in part counts when
// the rest of it gave a listener: the agent's own is one of those that are active.
func configured(numbers map[string]int64) error {
	const lds, cds = "listener_manager.lds.update_", "cluster_manager.cds.update_"
	switch {
	case numbers[cds+"success"]+numbers[cds+"rejected"] == 0:
		return errors.New("envoy has no clusters from the control plane yet")
	case numbers[lds+"success"] > 0 || numbers["listener_manager.total_listeners_active"] > 1:
		return nil
	case numbers[lds+"rejected"] > 0:
		return errors.New("envoy has refused all listeners of its first configuration: see its log")
	default:
		return errors.New("envoy has no listeners from the control plane yet")
	}
}
