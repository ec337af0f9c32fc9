// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package kube

import "sigs.k8s.io/controller-runtime/pkg/client"

// Live reads from the API server itself, for questions that a cache a moment behind would answer wrongly. It reads what Rules allow.
func (c *Controller) Live() client.Reader { return c.client }
