// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"slices"

	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
)

// handleSotW takes one request of the state-of-the-world protocol.
func (st *stream) handleSotW(req *discoveryv3.DiscoveryRequest) error {
	k, err := st.admit(req.GetTypeUrl(), req.GetNode())
	if err != nil {
		return err
	}
	if err := st.bounded(k, req.GetResourceNames()); err != nil {
		return err
	}
	news := tidings{}
	err = st.takeSotW(k, req, &news)
	st.publish(&news)
	return err
}

// takeSotW changes the stream's state as the request says, and wakes the sender.
func (st *stream) takeSotW(k kind, req *discoveryv3.DiscoveryRequest, news *tidings) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	sub, first := st.subscription(k)
	if first {
		sub.legacy = k.whole()
	}
	nonce := req.GetResponseNonce()
	answered := st.answered(k, sub, nonce, req.GetErrorDetail().GetMessage(), req.GetErrorDetail() != nil, news)
	if !answered && !st.bucket.take(st.srv.clock.Now()) {
		return flood("more than %g requests a second", st.srv.limits.Requests)
	}
	// A request that answers another than the newest response is about to be followed by one that does; its names may be old.
	if first || nonce == sub.newest {
		st.rename(k, sub, req.GetResourceNames())
	}
	if first {
		st.beginSotW(k, sub, req.GetVersionInfo(), news)
	}
	st.kick()
	return nil
}

// rename makes names those that the client wants: new ones are answered, those left out are forgotten.
func (st *stream) rename(k kind, sub *subscription, names []string) {
	sub.legacy = sub.legacy && len(names) == 0
	wildcard := sub.legacy || slices.Contains(names, everything)
	if wildcard && !sub.wildcard {
		for _, name := range st.snap.names(k) {
			sub.touch(name, look)
		}
	}
	sub.wildcard = wildcard
	next := make(map[string]struct{}, len(names))
	for _, name := range names {
		if name == everything {
			continue
		}
		next[name] = struct{}{}
		if _, known := sub.names[name]; !known {
			sub.touch(name, force)
			sub.answer = sub.answer || k.whole() // the set tells which of them do not exist
		}
	}
	sub.names = next
	for name := range sub.sent {
		if !sub.wants(name) {
			sub.renounce(name)
		}
	}
}

// beginSotW is the rest of the first request of a type. A client that comes back with all that it shall have of it gets nothing.
func (st *stream) beginSotW(k kind, sub *subscription, version string, news *tidings) {
	st.returning = st.returning || version != ""
	if k == endpoints {
		st.settleDebts(sub, st.serving())
	}
	sub.answer = k.whole()
	if version == "" {
		return
	}
	p := plan{st: st}
	set := p.set(k, sub)
	if version != setVersion(set) {
		if k == clusters {
			st.removals = st.srv.clock.Now().Add(st.srv.limits.Removal)
		}
		return
	}
	sub.answer = false
	for _, r := range set {
		if sub.dirty[r.name]&push != 0 {
			continue // its cluster is sent again, and Envoy waits for it
		}
		delete(sub.dirty, r.name)
		sub.sent[r.name] = held{version: r.version, res: r, acked: true}
		current, verdict := st.snap.lookup(k, r.name)
		st.approve(k, verdict, r, current, news)
	}
	if k.whole() {
		clear(sub.dirty)
	}
}

// setVersion is the version of a set of resources.
func setVersion(set []*Resource) string {
	versions := make(map[string]string, len(set))
	for _, r := range set {
		versions[r.name] = r.version
	}
	return stateVersion(versions)
}

// stateVersion is the version of resources whose versions are given by name: the same for the same set, in every process.
func stateVersion(versions map[string]string) string {
	h := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		h.Write([]byte(name))
		h.Write([]byte{0})
		h.Write([]byte(versions[name]))
	}
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:versionBytes])
}
