// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import "sync"

// verdict remembers how the proxies of one group took the versions of one resource.
type verdict struct {
	mu   sync.Mutex
	good *Resource // the last version that one of them acked
	bad  *Resource // a version that one of them refused and none acked
}

// acked notes that a proxy took r while current is what the group should have. It returns true if r was held back from other proxies until now.
func (v *verdict) acked(r, current *Resource) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.good == r {
		return false
	}
	if v.good != nil && (current == nil || r.version != current.version) {
		return false // a late answer says nothing that is still of use
	}
	v.good = r
	if v.bad == nil {
		return false
	}
	revived := v.bad.version == r.version
	v.bad = nil
	return revived
}

// nacked notes that a proxy refused r.
func (v *verdict) nacked(r *Resource) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.good == nil || v.good.version != r.version {
		v.bad = r
	}
}

// choose returns what a proxy that does not have current shall get: the last good version if current was refused, else current.
func (v *verdict) choose(current *Resource) *Resource {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.good != nil && v.bad != nil && v.bad.version == current.version {
		return v.good
	}
	return current
}
