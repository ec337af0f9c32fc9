// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package relay

import (
	"cmp"
	"context"
	"fmt"
	"hash/maphash"
	"net"
	"net/netip"
	"slices"
)

// target is one address behind an endpoint: one replica of the control plane where the endpoint's name has an address for each.
type target struct {
	endpoint Endpoint
	// address is what net.Dial takes.
	address string
}

// String names the endpoint, and the address where it is another.
func (t target) String() string {
	if t.address == t.endpoint.address {
		return t.endpoint.String()
	}
	return t.endpoint.String() + " (" + t.address + ")"
}

// targets are all addresses of all endpoints in the order in which to try them, with what was wrong with endpoints that have none.
func (r *Relay) targets(ctx context.Context) ([]target, []error) {
	var list []target
	var failures []error
	for _, e := range r.endpoints {
		addresses, err := r.addresses(ctx, e)
		if err != nil {
			failures = append(failures, fmt.Errorf("%s: %w", e, err))
		}
		for _, address := range addresses {
			list = append(list, target{endpoint: e, address: address})
		}
	}
	r.mu.Lock()
	left := r.left
	r.mu.Unlock()
	// What comes after the one that was left comes first.
	after := 1 + slices.IndexFunc(list, func(t target) bool { return t.String() == left })
	return slices.Concat(list[after:], list[:after]), failures
}

// leave notes where a stream ended.
func (r *Relay) leave(t target) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.left = t.String()
}

// addresses looks a name up.
func (r *Relay) addresses(ctx context.Context, e Endpoint) ([]string, error) {
	if e.network != "tcp" {
		return []string{e.address}, nil
	}
	host, port, err := net.SplitHostPort(e.address)
	if err != nil {
		return nil, err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return []string{e.address}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	found, err := r.lookup(ctx, host)
	if err != nil {
		return nil, err
	}
	addresses := make([]string, 0, len(found))
	for _, address := range found {
		addresses = append(addresses, net.JoinHostPort(address.Unmap().String(), port))
	}
	slices.SortFunc(addresses, func(a, b string) int {
		return cmp.Or(cmp.Compare(maphash.String(r.seed, a), maphash.String(r.seed, b)), cmp.Compare(a, b))
	})
	return slices.Compact(addresses), nil
}
