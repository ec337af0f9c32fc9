// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"

// everything is the name that stands for all resources of a type.
const everything = "*"

// handleDelta takes one request of the incremental protocol.
func (st *stream) handleDelta(req *discoveryv3.DeltaDiscoveryRequest) error {
	k, err := st.admit(req.GetTypeUrl(), req.GetNode())
	if err != nil {
		return err
	}
	for _, names := range [][]string{req.GetResourceNamesSubscribe(), req.GetResourceNamesUnsubscribe()} {
		if err := st.bounded(k, names); err != nil {
			return err
		}
	}
	if len(req.GetInitialResourceVersions()) > st.srv.limits.Names {
		return flood("initial versions of %d resources: the limit is %d", len(req.GetInitialResourceVersions()), st.srv.limits.Names)
	}
	news := tidings{}
	err = st.takeDelta(k, req, &news)
	st.publish(&news)
	return err
}

// takeDelta changes the stream's state as the request says, and wakes the sender.
func (st *stream) takeDelta(k kind, req *discoveryv3.DeltaDiscoveryRequest, news *tidings) error {
	st.mu.Lock()
	defer st.mu.Unlock()
	sub, first := st.subscription(k)
	if first {
		sub.wildcard = k.whole() && len(req.GetResourceNamesSubscribe()) == 0
	}
	answered := st.answered(k, sub, req.GetResponseNonce(), req.GetErrorDetail().GetMessage(), req.GetErrorDetail() != nil, news)
	talks := len(req.GetResourceNamesSubscribe())+len(req.GetResourceNamesUnsubscribe()) > 0
	if (!answered || talks) && !st.bucket.take(st.srv.clock.Now()) {
		return flood("more than %g requests a second", st.srv.limits.Requests)
	}
	st.subscribe(k, sub, req.GetResourceNamesSubscribe())
	st.unsubscribe(k, sub, req.GetResourceNamesUnsubscribe())
	if len(sub.names) > st.srv.limits.Names {
		return flood("subscribed to %d names: the limit is %d", len(sub.names), st.srv.limits.Names)
	}
	if first {
		st.begin(k, sub, req.GetInitialResourceVersions(), news)
	}
	st.kick()
	return nil
}

func (st *stream) subscribe(k kind, sub *subscription, names []string) {
	for _, name := range names {
		if name == everything {
			sub.wildcard = true
			for _, n := range st.snap.names(k) {
				sub.touch(n, look)
			}
			continue
		}
		sub.names[name] = struct{}{}
		sub.touch(name, force)
	}
}

func (st *stream) unsubscribe(k kind, sub *subscription, names []string) {
	for _, name := range names {
		if name != everything {
			delete(sub.names, name)
			sub.renounce(name)
			if sub.wildcard {
				sub.touch(name, force) // the wildcard still covers it, so its state must be told
			}
			continue
		}
		sub.wildcard = false
		for n := range sub.sent {
			if !sub.wants(n) {
				sub.renounce(n)
			}
		}
	}
	if k == clusters && len(names) > 0 {
		for n := range st.warming {
			if !sub.wants(n) {
				delete(st.warming, n)
			}
		}
	}
}

// begin is the rest of the first request of a type: what the client brings from an earlier stream is not sent again.
func (st *stream) begin(k kind, sub *subscription, initial map[string]string, news *tidings) {
	if sub.wildcard {
		sub.answer = len(initial) == 0
		for _, name := range st.snap.names(k) {
			sub.touch(name, look)
		}
	}
	st.returning = st.returning || len(initial) > 0
	for name, version := range initial {
		if !sub.wants(name) {
			continue
		}
		h := held{version: version}
		if current, verdict := st.snap.lookup(k, name); current != nil && current.version == version {
			h.res, h.acked = current, true
			st.approve(k, verdict, current, current, news)
		}
		sub.sent[name] = h
		sub.dirty[name] = look
	}
	if k == clusters && len(initial) > 0 {
		st.removals = st.srv.clock.Now().Add(st.srv.limits.Removal)
	}
	if k == endpoints {
		st.settleDebts(sub, st.serving())
	}
}

// serving says that the client may use a new cluster at once: it came back with configuration, or is past its first clusters and asks for more. One that
// starts asks for the endpoints of its clusters in its own time, and for listeners only then.
func (st *stream) serving() bool {
	return st.returning || st.subs[listeners] != nil || st.subs[routes] != nil
}

// settleDebts sees to it that the endpoints of clusters which were sent already follow, whatever version of them the client has; with all, also those
// that it has not subscribed to yet.
func (st *stream) settleDebts(sub *subscription, all bool) {
	for name := range st.owed {
		if all || sub.wants(name) {
			sub.touch(name, force|push)
		}
	}
	st.owed = nil
}
