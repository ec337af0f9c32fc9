// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"slices"
	"time"
)

// mark says why a name must be looked at.
type mark uint8

const (
	look  mark = 1 << iota // send it if the client has another version
	force                  // send it even if the client has this version
	push                   // endpoints: send them though the client has not subscribed yet, since their cluster was just sent
	alone                  // send it in a response of its own
)

// held is what the client has, or was sent, under one name.
type held struct {
	version string
	res     *Resource // nil if the client brought the version from an earlier stream
	acked   bool
}

// response is one that was sent and not yet answered, or is about to be sent.
type response struct {
	kind      kind
	nonce     string
	serial    uint64 // the nonce as a number
	version   string // state of the world
	resources []*Resource
	removed   []string
	at        time.Time // when it was made
	since     time.Time // when the oldest change in it arrived; zero if unknown
}

// subscription is one type on one stream. It is guarded by the stream's lock.
type subscription struct {
	asked    bool // the client has sent a request of the type
	wildcard bool
	legacy   bool // state of the world: no name was ever asked for
	names    map[string]struct{}
	sent     map[string]held
	refused  map[string]string // the client's error text, by name, for the version in sent
	dirty    map[string]mark
	answer   bool // a response is owed even if it is empty
	since    time.Time
	unacked  []*response
	newest   string // the nonce of the last response
	ackedAt  time.Time
	lastNack string
	nackedAt time.Time
}

func newSubscription() *subscription {
	return &subscription{names: map[string]struct{}{}, sent: map[string]held{}, dirty: map[string]mark{}}
}

// wants says that the client asked for the name.
func (u *subscription) wants(name string) bool {
	if u.wildcard {
		return true
	}
	_, ok := u.names[name]
	return ok
}

func (u *subscription) touch(name string, m mark) { u.dirty[name] |= m }

// renounce forgets what the client no longer asks for. Endpoints that are to be pushed still are: the client speaks of an earlier cluster of this name.
func (u *subscription) renounce(name string) {
	owed := u.dirty[name] & push
	u.drop(name)
	if owed != 0 {
		u.dirty[name] = force | push
	}
}

// drop forgets all about a name.
func (u *subscription) drop(name string) {
	delete(u.sent, name)
	delete(u.refused, name)
	delete(u.dirty, name)
}

// has says that the client was sent, or has, exactly this.
func (u *subscription) has(r *Resource) bool {
	h, ok := u.sent[r.name]
	return ok && h.version == r.version
}

// note remembers that r is on its way to the client.
func (u *subscription) note(r *Resource) {
	u.sent[r.name] = held{version: r.version, res: r}
	delete(u.refused, r.name)
}

// sorted returns the dirty names in order.
func (u *subscription) sorted() []string {
	if len(u.dirty) == 0 {
		return nil
	}
	names := make([]string, 0, len(u.dirty))
	for name := range u.dirty {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// settled forgets the time of the oldest change once nothing waits.
func (u *subscription) settled() {
	if len(u.dirty) == 0 {
		u.since = time.Time{}
	}
}
