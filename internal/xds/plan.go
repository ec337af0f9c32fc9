// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// largestResponse is the size at which a delta response is closed and another begun. State of the world has no such choice.
const largestResponse = 1 << 20

// plan decides what a stream sends next, in the order that loses no request: clusters, the endpoints of each that was added or changed,
// listeners, routes, and what is to be removed last. Nothing waits for an answer, except that a route waits for a cluster that warms.
// The stream's lock is held throughout.
type plan struct {
	st      *stream
	now     time.Time
	out     []*response
	expired []*Resource // sent although they need a cluster that warms
}

func (p *plan) run() {
	complete := p.additions(clusters)
	complete = p.endpoints() && complete
	if complete && p.additions(listeners) && p.routes() {
		p.lastly()
	}
	for _, sub := range p.st.subs {
		if sub != nil {
			sub.settled()
		}
	}
}

// full says that so many responses are unanswered that the next must wait.
func (p *plan) full(sub *subscription) bool { return len(sub.unacked) >= p.st.srv.limits.Unacked }

// pick returns what the client shall have under a name, nil for nothing.
func (p *plan) pick(k kind, sub *subscription, name string) *Resource {
	current, verdict := p.st.snap.lookup(k, name)
	if current == nil || sub.has(current) {
		return current
	}
	return verdict.choose(current)
}

// emit adds a response to the batch and to those that wait for an answer.
func (p *plan) emit(sub *subscription, r *response) {
	p.st.serial++
	r.serial = p.st.serial
	r.nonce = strconv.FormatUint(r.serial, 36)
	r.at = p.now
	r.since = sub.since
	sub.newest = r.nonce
	sub.unacked = append(sub.unacked, r)
	sub.answer = false
	p.out = append(p.out, r)
}

// additions sends the clusters or listeners that are new or changed, and with listeners those that are gone. It returns false if some must wait for
// a later batch, so that nothing which depends on them may go before.
func (p *plan) additions(k kind) bool {
	sub := p.st.subs[k]
	if sub == nil {
		return true
	}
	if p.full(sub) {
		return len(sub.dirty) == 0
	}
	p.prune(k, sub)
	add, gone, held := p.sift(k, sub)
	if k == clusters {
		gone = nil // they stay dirty until lastly
	}
	if held && sub.answer {
		return true // the first answer is to be complete, since the client starts to serve on it
	}
	if len(add) == 0 && len(gone) == 0 && !sub.answer {
		return true
	}
	if p.st.proxy.Delta {
		p.chunks(k, sub, add, gone)
	} else {
		p.whole(k, sub, k == clusters)
	}
	return true
}

// sift goes through the dirty names: which are to be sent, which are gone, and whether some listener is held.
func (p *plan) sift(k kind, sub *subscription) (add []*Resource, gone []string, held bool) {
	for _, name := range sub.sorted() {
		want := p.pick(k, sub, name)
		switch {
		case want == nil && p.mustTell(sub, name):
			gone = append(gone, name)
		case p.idle(sub, want, name):
			delete(sub.dirty, name)
		case k == listeners && p.held(sub, want):
			held = true
		default:
			add = append(add, want)
		}
	}
	return add, gone, held
}

// idle says that a dirty name needs no response: the client has what it shall have.
func (p *plan) idle(sub *subscription, want *Resource, name string) bool {
	return want == nil || sub.dirty[name]&force == 0 && sub.has(want)
}

// mustTell says that the client must learn that something does not exist.
func (p *plan) mustTell(sub *subscription, name string) bool {
	_, had := sub.sent[name]
	return had || sub.dirty[name]&force != 0 && p.st.proxy.Delta
}

// prune forgets holds of what needs not be sent any more.
func (p *plan) prune(k kind, sub *subscription) {
	for key := range p.st.holds {
		if _, dirty := sub.dirty[key.name]; key.kind == k && !dirty {
			delete(p.st.holds, key)
		}
	}
}

// chunks sends delta responses of bounded size, and alone what must be alone.
func (p *plan) chunks(k kind, sub *subscription, add []*Resource, gone []string) {
	r := &response{kind: k, removed: gone}
	size := 0
	flush := func() {
		p.emit(sub, r)
		for _, res := range r.resources {
			p.sent(k, sub, res)
		}
		r, size = &response{kind: k}, 0
	}
	for _, res := range add {
		if sub.dirty[res.name]&alone != 0 {
			continue
		}
		if size += res.Size(); size > largestResponse && len(r.resources) > 0 {
			flush()
			size = res.Size()
		}
		r.resources = append(r.resources, res)
	}
	if len(r.resources) > 0 || len(gone) > 0 || sub.answer {
		flush()
	}
	for _, res := range add {
		if sub.dirty[res.name]&alone != 0 {
			r.resources = []*Resource{res}
			flush()
		}
	}
	for _, name := range gone {
		sub.drop(name)
	}
}

// sent notes that a resource is on its way, and what follows from that.
func (p *plan) sent(k kind, sub *subscription, r *Resource) {
	_, had := sub.sent[r.name]
	sub.note(r)
	delete(sub.dirty, r.name)
	if k != clusters {
		return
	}
	if r.Warms && !had {
		if p.st.warming == nil {
			p.st.warming = map[string]uint64{}
		}
		p.st.warming[r.name] = p.st.serial
	}
	if r.Endpoints == "" {
		return
	}
	if eds := p.st.subs[endpoints]; eds != nil {
		eds.touch(r.Endpoints, force|push)
		return
	}
	if p.st.owed == nil {
		p.st.owed = map[string]struct{}{}
	}
	p.st.owed[r.Endpoints] = struct{}{}
}

// endpoints sends assignments, each in a response of its own. It returns false if some must wait for answers.
func (p *plan) endpoints() bool {
	sub := p.st.subs[endpoints]
	if sub == nil {
		if len(p.st.owed) == 0 || p.st.subs[listeners] == nil && p.st.subs[routes] == nil {
			return true
		}
		sub = newSubscription() // before the client asks: it had no cluster that needs endpoints until now
		p.st.subs[endpoints] = sub
		p.st.settleDebts(sub, true)
	}
	var none []string
	for _, name := range sub.sorted() {
		want := p.pick(endpoints, sub, name)
		switch {
		case want == nil && sub.wants(name):
			none = append(none, name)
			continue
		case p.idle(sub, want, name):
			delete(sub.dirty, name)
			continue
		case p.full(sub):
			return false
		}
		p.emit(sub, &response{kind: endpoints, resources: []*Resource{want}, version: p.state(sub, want)})
		delete(sub.dirty, name)
		if sub.wants(name) {
			sub.note(want)
		}
	}
	return p.noEndpoints(sub, none)
}

// state is the version of all that a state-of-the-world client has of a type once it has taken next, so that it need be sent nothing when it comes back with it.
func (p *plan) state(sub *subscription, next *Resource) string {
	if p.st.proxy.Delta {
		return ""
	}
	versions := make(map[string]string, len(sub.sent)+1)
	for name, h := range sub.sent {
		if sub.wants(name) {
			versions[name] = h.version
		}
	}
	versions[next.name] = next.version
	return stateVersion(versions)
}

// noEndpoints answers for assignments that do not exist. Those that the client has and that its group no longer sees wait for the end of their
// clusters, on which the client forgets them by itself.
func (p *plan) noEndpoints(sub *subscription, names []string) bool {
	var gone []string
	for _, name := range names {
		_, seen := p.st.snap.assignments[name]
		_, had := sub.sent[name]
		switch {
		case sub.dirty[name]&force != 0, seen && had:
			gone = append(gone, name)
		default:
			delete(sub.dirty, name)
		}
	}
	if len(gone) > 0 && p.full(sub) {
		return false
	}
	p.remove(endpoints, sub, gone)
	return true
}

// routes sends route configurations, each in a response of its own. It returns false if some must wait.
func (p *plan) routes() bool {
	sub := p.st.subs[routes]
	if sub == nil {
		return true
	}
	p.prune(routes, sub)
	for _, name := range sub.sorted() {
		want := p.pick(routes, sub, name)
		switch {
		case want == nil && p.mustTell(sub, name): // it stays dirty until lastly
		case p.idle(sub, want, name):
			delete(sub.dirty, name)
		case p.full(sub):
			return false
		case p.held(sub, want):
		default:
			p.emit(sub, &response{kind: routes, resources: []*Resource{want}, version: p.state(sub, want)})
			p.sent(routes, sub, want)
		}
	}
	return true
}

// held says that a listener or route must wait for a cluster that is new to the client and warms. A resource that the client has never had
// waits less, so that it arrives before the client gives up on it.
func (p *plan) held(sub *subscription, r *Resource) bool {
	st := p.st
	key := hold{kind: r.kind, name: r.name}
	waits := len(st.warming) > 0 && slices.ContainsFunc(r.Needs, func(c string) bool { _, warms := st.warming[c]; return warms })
	if !waits {
		delete(st.holds, key)
		return false
	}
	since, already := st.holds[key]
	if !already {
		if st.holds == nil {
			st.holds = map[hold]time.Time{}
		}
		st.holds[key] = p.now
		return true
	}
	limit := st.srv.limits.Hold
	if _, had := sub.sent[r.name]; !had {
		limit = limit * 2 / 3
	}
	if p.now.Sub(since) < limit {
		return true
	}
	delete(st.holds, key)
	p.expired = append(p.expired, r)
	return false
}

// lastly removes routes, and clusters once nothing that is still on its way may need them.
func (p *plan) lastly() {
	st := p.st
	if sub := st.subs[routes]; sub != nil && !p.full(sub) {
		p.remove(routes, sub, p.gone(routes, sub))
	}
	sub := st.subs[clusters]
	if sub == nil || len(st.holds) > 0 || p.full(sub) || p.reconnecting() {
		return
	}
	gone := p.gone(clusters, sub)
	if st.proxy.Delta || len(gone) == 0 {
		p.remove(clusters, sub, gone)
		return
	}
	p.whole(clusters, sub, false)
}

// reconnecting says that the client came back with clusters and may still ask for the routes that replace those which use them.
func (p *plan) reconnecting() bool {
	st := p.st
	if st.removals.IsZero() {
		return false
	}
	if (st.subs[listeners] == nil || st.subs[routes] == nil) && p.now.Before(st.removals) {
		return true
	}
	st.removals = time.Time{}
	return false
}

// gone returns the dirty names under which the client has, or asks for, something that does not exist.
func (p *plan) gone(k kind, sub *subscription) []string {
	var names []string
	for _, name := range sub.sorted() {
		if p.pick(k, sub, name) == nil {
			names = append(names, name)
		}
	}
	return names
}

// remove tells a delta client that names do not exist; the state-of-the-world protocol has no words for it outside whole sets.
func (p *plan) remove(k kind, sub *subscription, names []string) {
	if len(names) == 0 {
		return
	}
	for _, name := range names {
		sub.drop(name)
		if k == clusters {
			delete(p.st.warming, name)
		}
	}
	if p.st.proxy.Delta {
		p.emit(sub, &response{kind: k, removed: names})
	}
}

// whole sends the set of all clusters or listeners; keep retains those that are to be removed later.
func (p *plan) whole(k kind, sub *subscription, keep bool) {
	set := p.set(k, sub)
	fresh := make([]*Resource, 0, len(set))
	for _, r := range set {
		if sub.dirty[r.name]&force != 0 || !sub.has(r) {
			fresh = append(fresh, r)
		}
	}
	listed := make(map[string]bool, len(set))
	for _, r := range set {
		listed[r.name] = true
	}
	for name, h := range sub.sent {
		switch {
		case listed[name]:
		case keep && h.res != nil:
			set = append(set, h.res)
		default:
			sub.drop(name)
		}
	}
	slices.SortFunc(set, func(a, b *Resource) int { return strings.Compare(a.name, b.name) })
	p.emit(sub, &response{kind: k, resources: set, version: setVersion(set)})
	for _, r := range fresh {
		p.sent(k, sub, r)
	}
	for name := range sub.dirty {
		if _, has := sub.sent[name]; !has && !p.holding(k, name) {
			delete(sub.dirty, name)
		}
	}
}

func (p *plan) holding(k kind, name string) bool {
	_, is := p.st.holds[hold{kind: k, name: name}]
	return is
}

// set returns all that the client shall have of a kind. For what it refused it gets the last version that its group took; for what is held, the one it has.
func (p *plan) set(k kind, sub *subscription) []*Resource {
	names := p.st.snap.names(k)
	set := make([]*Resource, 0, len(names))
	for _, name := range names {
		if !sub.wants(name) {
			continue
		}
		want := p.pick(k, sub, name)
		if _, refused := sub.refused[name]; refused {
			current, verdict := p.st.snap.lookup(k, name)
			want = verdict.choose(current)
		}
		if p.holding(k, name) {
			want = sub.sent[name].res
		}
		if want != nil {
			set = append(set, want)
		}
	}
	return set
}
