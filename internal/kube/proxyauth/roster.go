// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package proxyauth

import (
	"context"
	"strconv"
	"sync"

	"golang.org/x/sync/singleflight"

	"github.com/tulle-mesh/tulle/internal/decode"
)

// rosters keeps what the pods of each namespace can belong to until something changes, so that proxies which come together cost one reading.
type rosters struct {
	read   func(ctx context.Context, namespace string) (*decode.Roster, error)
	flight singleflight.Group

	mu    sync.Mutex
	known map[string]*decode.Roster
	// age counts the changes, so that what was read before one is not kept after it.
	age uint64
}

func newRosters(read func(context.Context, string) (*decode.Roster, error)) *rosters {
	return &rosters{read: read, known: map[string]*decode.Roster{}}
}

// clear forgets all.
func (r *rosters) clear() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.age++
	clear(r.known)
}

func (r *rosters) of(ctx context.Context, namespace string) (*decode.Roster, error) {
	r.mu.Lock()
	known, age := r.known[namespace], r.age
	r.mu.Unlock()
	if known != nil {
		return known, nil
	}
	value, err, _ := r.flight.Do(namespace+"/"+strconv.FormatUint(age, 10), func() (any, error) {
		// Those who wait for it are not to lose it with the one who asked first.
		return r.read(context.WithoutCancel(ctx), namespace)
	})
	if err != nil {
		return nil, err
	}
	fresh, _ := value.(*decode.Roster)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.age == age {
		r.known[namespace] = fresh
	}
	return fresh, nil
}
