// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package envoy

import (
	"slices"
	"strings"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// hostSelections is how often a retry looks for an endpoint that was not tried yet.
const hostSelections = 5

// retryCodes are the status codes that the API's HTTP events stand for.
func retryCodes(event string) []uint32 {
	switch event {
	case "server-error":
		return []uint32{500, 501, 502, 503, 504, 505, 506, 507, 508, 510, 511}
	case "gateway-error":
		return []uint32{502, 503, 504}
	case "client-error":
		return []uint32{409}
	default:
		return nil
	}
}

// retryPolicy is the user's policy in Envoy's words. It replaces the default whole.
func retryPolicy(r *mesh.RetryPolicy) *routev3.RetryPolicy {
	var on []string
	var codes []uint32
	for _, event := range r.HTTPRetryEvents {
		for _, code := range retryCodes(event) {
			if !slices.Contains(codes, code) {
				codes = append(codes, code)
			}
		}
	}
	has := func(event string) bool { return slices.Contains(r.HTTPRetryEvents, event) }
	if has("server-error") || has("gateway-error") {
		on = append(on, "reset")
	}
	if has("stream-error") {
		on = append(on, "refused-stream")
	}
	if slices.Contains(r.TCPRetryEvents, "connection-error") {
		on = append(on, "connect-failure")
	}
	for _, event := range []string{"cancelled", "deadline-exceeded", "internal", "resource-exhausted", "unavailable"} {
		if slices.Contains(r.GRPCRetryEvents, event) {
			on = append(on, event)
		}
	}
	if len(codes) > 0 {
		on = append(on, "retriable-status-codes")
	}
	return &routev3.RetryPolicy{
		RetryOn:                       strings.Join(on, ","),
		NumRetries:                    count(uint32(min(max(r.MaxRetries, 0), unlimited))),
		PerTryTimeout:                 spanOrDefault(r.PerRetryTimeout),
		RetryHostPredicate:            constants().previousHosts,
		HostSelectionRetryMaxAttempts: hostSelections,
		RetriableStatusCodes:          codes,
	}
}
