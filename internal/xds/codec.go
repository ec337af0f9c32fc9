// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

// Field numbers that a DiscoveryResponse and a DeltaDiscoveryResponse have in common.
const (
	fieldResources = 2
	fieldTypeURL   = 4
	fieldNonce     = 5
)
