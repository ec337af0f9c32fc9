// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"cmp"
	"slices"
	"time"
)

// ProxyStatus is what one connected proxy has, for people and for the conditions of the objects that its resources were built from.
type ProxyStatus struct {
	Proxy Proxy        `json:"proxy"`
	Group string       `json:"group,omitempty"`
	Since time.Time    `json:"since"` // when it connected
	Types []TypeStatus `json:"types,omitempty"`
}

// TypeStatus is the state of one type on one stream. A type that the client never asked for is left out.
type TypeStatus struct {
	TypeURL string `json:"typeUrl,omitempty"`
	// Pending is how many names wait to be sent; Unacked is how many responses the client has not answered.
	Pending int `json:"pending"`
	Unacked int `json:"unacked"`
	// Resources are those that the client was sent or said it has, sorted by name.
	Resources []ResourceStatus `json:"resources,omitempty"`
	// AckedAt is when the client last took a response on this stream; zero if it took none.
	AckedAt time.Time `json:"ackedAt,omitzero"`
	// LastNack is the text of the last refusal on this stream, and NackedAt its time; "" if there was none.
	LastNack string    `json:"lastNack,omitempty"`
	NackedAt time.Time `json:"nackedAt,omitzero"`
}

// ResourceStatus is one resource on one stream.
type ResourceStatus struct {
	Name string `json:"name,omitempty"`
	// Version is the last that was sent, or that the client said it has.
	Version string `json:"version,omitempty"`
	// Acked says that the client took this version.
	Acked bool `json:"acked"`
	// Refused is the client's error text if it refused this version, else "".
	Refused string `json:"refused,omitempty"`
	// Origin is the Traits.Origin of this version; nil if the client brought the version from an earlier stream.
	Origin any `json:"origin,omitempty"`
}

// status returns what the stream has; the server's lock is held.
func (st *stream) status() ProxyStatus {
	st.mu.Lock()
	defer st.mu.Unlock()
	out := ProxyStatus{Proxy: st.proxy, Group: st.group.name, Since: st.opened}
	for k, sub := range st.subs {
		if sub == nil {
			continue
		}
		t := TypeStatus{
			TypeURL: kind(k).typeURL(), Pending: len(sub.dirty), Unacked: len(sub.unacked), AckedAt: sub.ackedAt, LastNack: sub.lastNack, NackedAt: sub.nackedAt,
			Resources: make([]ResourceStatus, 0, len(sub.sent)),
		}
		for name, h := range sub.sent {
			r := ResourceStatus{Name: name, Version: h.version, Acked: h.acked, Refused: sub.refused[name]}
			if h.res != nil {
				r.Origin = h.res.Origin
			}
			t.Resources = append(t.Resources, r)
		}
		slices.SortFunc(t.Resources, func(a, b ResourceStatus) int { return cmp.Compare(a.Name, b.Name) })
		out.Types = append(out.Types, t)
	}
	return out
}
