// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"log/slog"
	"slices"
	"strings"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
)

// longestMessage is how much of a client's error text is kept, in bytes.
const longestMessage = 4 << 10

// constraints is what Envoy says when a response broke a rule of the protos; then it applied none of its resources.
const constraints = "Proto constraint validation failed"

// tidings is what came of a request, to be told once the stream's lock is free.
type tidings struct {
	kind    kind
	acked   []*response
	nack    *Nack
	revived []string // names of resources that were held back from other proxies of the group until now
}

// publish tells the recorder, and the group's other streams.
func (st *stream) publish(n *tidings) {
	rec := st.srv.rec
	for _, r := range n.acked {
		var since time.Duration
		if !r.since.IsZero() {
			since = st.srv.clock.Now().Sub(r.since)
		}
		rec.Acked(r.kind.typeURL(), since, !r.since.IsZero())
	}
	if n.nack != nil {
		rec.Nacked(*n.nack)
		st.srv.log.Warn("proxy refused a response", slog.String("node", st.proxy.NodeID), slog.String("type", n.nack.TypeURL),
			slog.Int("resources", len(n.nack.Resources)), slog.String("message", n.nack.Message))
	}
	for _, name := range n.revived {
		st.srv.touch(st.group, n.kind, name)
	}
}

// admit checks what every request must have.
func (st *stream) admit(typeURL string, node *corev3.Node) (kind, error) {
	k, ok := kindOf(typeURL)
	if !ok {
		return 0, garbage("resources of type %q are not served here", clip(typeURL))
	}
	return k, st.identify(node)
}

// bounded checks the names of a request.
func (st *stream) bounded(k kind, names []string) error {
	l := st.srv.limits
	if len(names) > l.Names {
		return flood("%d names of type %s in one request: the limit is %d", len(names), k.typeURL(), l.Names)
	}
	for _, n := range names {
		if len(n) > l.NameLength {
			return flood("a resource name of %d bytes: the limit is %d", len(n), l.NameLength)
		}
		if n == "" {
			return garbage("an empty resource name of type %s", k.typeURL())
		}
	}
	return nil
}

// clip keeps a client's own words short in messages.
func clip(s string) string { return cut(s, 128) }

func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// answered takes an ACK or NACK. It returns false if the nonce belongs to no response that waits for an answer: it is stale, or made up. A response
// before the one that is answered counts as taken: clients answer in order, and may leave out answers that a later one makes superfluous.
func (st *stream) answered(k kind, sub *subscription, nonce, message string, refused bool, news *tidings) bool {
	if nonce == "" {
		return false
	}
	i := slices.IndexFunc(sub.unacked, func(r *response) bool { return r.nonce == nonce })
	if i < 0 {
		return false
	}
	news.kind = k
	news.acked = slices.Clone(sub.unacked[:i+1])
	sub.unacked = slices.Delete(sub.unacked, 0, i+1)
	last := news.acked[i]
	if k == clusters {
		for name, serial := range st.warming {
			if serial <= last.serial {
				delete(st.warming, name)
			}
		}
	}
	if refused {
		news.acked = news.acked[:i]
		st.refuse(k, sub, last, cut(message, longestMessage), news)
	}
	if len(news.acked) > 0 {
		sub.ackedAt = st.srv.clock.Now()
	}
	for _, r := range news.acked {
		st.take(k, sub, r.resources, news)
	}
	return true
}

// take notes that the client has these resources.
func (st *stream) take(k kind, sub *subscription, taken []*Resource, news *tidings) {
	for _, r := range taken {
		if h, ok := sub.sent[r.name]; ok && h.version == r.version && !h.acked {
			h.acked = true
			sub.sent[r.name] = h
			delete(sub.refused, r.name)
		}
		current, verdict := st.snap.lookup(k, r.name)
		st.approve(k, verdict, r, current, news)
	}
}

// approve notes for the whole group that a proxy has a version.
func (st *stream) approve(k kind, v *verdict, r, current *Resource, news *tidings) {
	if v != nil && v.acked(r, current) {
		news.kind = k
		news.revived = append(news.revived, r.name)
	}
}

// refuse takes a NACK. The client keeps what it had of the resources at fault, which are those that its message names; where it names none, each
// is sent again alone, so that the good ones are taken and the bad one is known.
func (st *stream) refuse(k kind, sub *subscription, r *response, message string, news *tidings) {
	sub.lastNack, sub.nackedAt = message, st.srv.clock.Now()
	n := &Nack{Proxy: st.proxy, Group: st.group.name, TypeURL: k.typeURL(), Message: message, Resources: r.resources}
	news.nack = n
	if !strings.Contains(message, constraints) || len(r.resources) == 1 {
		n.Named = named(message, r.resources)
	}
	bad := n.Named
	if len(r.resources) == 1 {
		bad = r.resources
	}
	if len(bad) == 0 && len(r.resources) > 0 {
		if !st.proxy.Delta {
			st.sour(sub, r.resources, message)
			return
		}
		n.Retrying = true
		for _, res := range r.resources {
			if sub.has(res) {
				sub.touch(res.name, force|alone)
			}
		}
		return
	}
	st.sour(sub, bad, message)
	for _, res := range bad {
		if _, verdict := st.snap.lookup(k, res.name); verdict != nil {
			verdict.nacked(res)
		}
	}
	good := slices.DeleteFunc(slices.Clone(r.resources), func(res *Resource) bool { return slices.Contains(bad, res) })
	st.take(k, sub, good, news)
}

// sour notes that the client refused versions, so that they are not sent to it again.
func (st *stream) sour(sub *subscription, bad []*Resource, message string) {
	for _, res := range bad {
		h, ok := sub.sent[res.name]
		if !ok || h.version != res.version || h.acked {
			continue
		}
		if sub.refused == nil {
			sub.refused = map[string]string{}
		}
		sub.refused[res.name] = message
	}
}

// named returns the resources that Envoy's message names: each at the beginning of a line or after a separator, before a colon.
func named(message string, resources []*Resource) []*Resource {
	var out []*Resource
	for _, r := range resources {
		rest := message
		for {
			i := strings.Index(rest, r.name+":")
			if i < 0 {
				break
			}
			if i == 0 || strings.ContainsRune(" \n,'\"", rune(rest[i-1])) {
				out = append(out, r)
				break
			}
			rest = rest[i+1:]
		}
	}
	return out
}
