// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"runtime"
	"sync"
	"weak"
)

// pool finds equal content, so that what several groups hold is in memory once. It keeps nothing alive.
type pool struct {
	mu   sync.Mutex
	held map[poolKey]weak.Pointer[content]
}

// poolKey names content; the resource's name is part of what the version is a hash of.
type poolKey struct {
	kind    kind
	version string
}

// share replaces the content of r by the equal one that the pool knows, or makes it known.
func (p *pool) share(r *Resource) {
	own := r.content.Load()
	key := poolKey{kind: r.kind, version: r.version}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := p.held[key].Value()
	switch {
	case known == own:
	case known != nil:
		r.content.Store(known)
	default:
		if p.held == nil {
			p.held = map[poolKey]weak.Pointer[content]{}
		}
		p.held[key] = weak.Make(own)
		runtime.AddCleanup(own, p.forget, key)
	}
}

// forget drops the key once its content is gone, unless equal content has taken its place.
func (p *pool) forget(key poolKey) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.held[key].Value() == nil {
		delete(p.held, key)
	}
}
