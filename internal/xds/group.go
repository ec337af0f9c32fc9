// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"
)

// group is the proxies that get the same Config. Its fields are guarded by Server.mu; the snapshot itself never changes.
type group struct {
	name    string
	snap    *snapshot
	streams map[*stream]struct{}
}

// snapshot is all that the proxies of a group shall have. Its maps never change; the endpoints behind them do, one at a time.
type snapshot struct {
	lists       [kinds][]*Resource      // what entries are made of; none for endpoints
	entries     [kinds]map[string]entry // none for endpoints
	assignments map[string]visible
}

// entry is a resource and what the group's proxies said of it.
type entry struct {
	res     *Resource
	verdict *verdict
}

// visible is an assignment that a cluster of the group refers to.
type visible struct {
	*assignment
	verdict *verdict
}

// assignment is the current ClusterLoadAssignment of one name, shared by all groups.
type assignment struct {
	current atomic.Pointer[Resource]
	groups  map[*group]struct{} // those that can see it; guarded by Server.mu
}

// lookup returns what the group should have under a name, and the verdict on it; nil if nothing.
func (s *snapshot) lookup(k kind, name string) (*Resource, *verdict) {
	if k == endpoints {
		v, ok := s.assignments[name]
		if !ok {
			return nil, nil
		}
		return v.current.Load(), v.verdict
	}
	e := s.entries[k][name]
	return e.res, e.verdict
}

// names returns the names of everything of one kind, in no order.
func (s *snapshot) names(k kind) []string {
	if k == endpoints {
		return slices.Collect(maps.Keys(s.assignments))
	}
	return slices.Collect(maps.Keys(s.entries[k]))
}

// change is what one Update means to one group: the names to look at.
type change struct {
	names [kinds][]string
	since time.Time
}

// Apply changes what proxies shall have. It returns at once: each stream sends what it lacks at its own pace, and changes that come faster coalesce.
func (s *Server) Apply(u Update) {
	for _, r := range u.Endpoints {
		if r != nil {
			s.pool.share(r)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	changes := map[*group]*change{}
	for name, r := range u.Endpoints {
		s.assign(name, r, changes)
	}
	for _, name := range slices.Sorted(maps.Keys(u.Groups)) {
		if u.Groups[name] == nil {
			s.dissolve(name)
			continue
		}
		g := s.groups[name]
		if g == nil {
			g = &group{name: name, snap: &snapshot{}, streams: map[*stream]struct{}{}}
			s.groups[name] = g
		}
		s.reconfigure(g, u.Groups[name], changeOf(changes, g))
	}
	for g, c := range changes {
		c.since = u.Since
		for st := range g.streams {
			st.update(g.snap, c)
		}
	}
}

func changeOf(changes map[*group]*change, g *group) *change {
	c := changes[g]
	if c == nil {
		c = &change{}
		changes[g] = c
	}
	return c
}

// index checks a list and makes its names fast to find. What cannot be delivered is logged and left out.
func (s *Server) index(groupName string, k kind, list []*Resource) map[string]*Resource {
	out := make(map[string]*Resource, len(list))
	for _, r := range list {
		switch {
		case r.kind != k:
			s.log.Error("resource left out: it is in the list of another type",
				slog.String("group", groupName), slog.String("name", r.name), slog.String("type", r.TypeURL()), slog.String("list", k.typeURL()))
		case out[r.name] != nil:
			s.log.Error("resource left out: another of its group has the same type and name",
				slog.String("group", groupName), slog.String("name", r.name), slog.String("type", r.TypeURL()))
		default:
			s.pool.share(r)
			out[r.name] = r
		}
	}
	return out
}

// assign sets the current endpoints of a name and notes the groups that see the change.
func (s *Server) assign(name string, r *Resource, changes map[*group]*change) {
	if r != nil && (r.kind != endpoints || r.name != name) {
		s.log.Error("endpoints left out: the resource under this name is another",
			slog.String("name", name), slog.String("resource", r.name), slog.String("type", r.TypeURL()))
		return
	}
	a := s.assignmentOf(name)
	old := a.current.Swap(r)
	s.forgetUnused(name, a)
	if (old == nil) == (r == nil) && (r == nil || old.version == r.version) {
		return
	}
	for g := range a.groups {
		c := changeOf(changes, g)
		c.names[endpoints] = append(c.names[endpoints], name)
	}
}

func (s *Server) assignmentOf(name string) *assignment {
	a := s.assignments[name]
	if a == nil {
		a = &assignment{groups: map[*group]struct{}{}}
		s.assignments[name] = a
	}
	return a
}

// forgetUnused drops an assignment that has no content and that nobody sees.
func (s *Server) forgetUnused(name string, a *assignment) {
	if len(a.groups) == 0 && a.current.Load() == nil {
		delete(s.assignments, name)
	}
}

// reconfigure gives the group a new snapshot and adds the names that differ to the change. A list that is the same costs nothing but the comparison.
func (s *Server) reconfigure(g *group, config *Config, c *change) {
	old := g.snap
	next := &snapshot{lists: [kinds][]*Resource{clusters: config.Clusters, listeners: config.Listeners, routes: config.Routes}, assignments: old.assignments}
	for _, k := range []kind{clusters, listeners, routes} {
		if slices.Equal(old.lists[k], next.lists[k]) {
			next.entries[k] = old.entries[k]
			continue
		}
		resources := s.index(g.name, k, next.lists[k])
		next.entries[k] = replace(old.entries[k], resources, func(name string) { c.names[k] = append(c.names[k], name) })
		if k == clusters {
			s.look(g, resources, next, c)
		}
	}
	g.snap = next
}

// replace makes entries of resources, with the verdicts on those that were there before, and tells the names that differ.
func replace(old map[string]entry, resources map[string]*Resource, differs func(name string)) map[string]entry {
	next := make(map[string]entry, len(resources))
	for name, r := range resources {
		before, had := old[name]
		if !had {
			before.verdict = &verdict{}
		}
		next[name] = entry{res: r, verdict: before.verdict}
		if !had || before.res.version != r.version {
			differs(name)
		}
	}
	for name := range old {
		if resources[name] == nil {
			differs(name)
		}
	}
	return next
}

// look makes visible to the group the assignments of its clusters, and no others.
func (s *Server) look(g *group, resources map[string]*Resource, next *snapshot, c *change) {
	next.assignments = make(map[string]visible, len(resources))
	for _, r := range resources {
		if r.Endpoints == "" {
			continue
		}
		if _, done := next.assignments[r.Endpoints]; !done {
			s.see(g, r.Endpoints, next, c)
		}
	}
	for name, v := range g.snap.assignments {
		if _, still := next.assignments[name]; !still {
			delete(v.groups, g)
			s.forgetUnused(name, v.assignment)
			c.names[endpoints] = append(c.names[endpoints], name)
		}
	}
}

// see makes an assignment visible to the group.
func (s *Server) see(g *group, name string, next *snapshot, c *change) {
	if v, had := g.snap.assignments[name]; had {
		next.assignments[name] = v
		return
	}
	a := s.assignmentOf(name)
	a.groups[g] = struct{}{}
	next.assignments[name] = visible{assignment: a, verdict: &verdict{}}
	c.names[endpoints] = append(c.names[endpoints], name)
}

// dissolve ends the streams of a group that is gone.
func (s *Server) dissolve(name string) {
	g := s.groups[name]
	if g == nil {
		return
	}
	delete(s.groups, name)
	for n, v := range g.snap.assignments {
		delete(v.groups, g)
		s.forgetUnused(n, v.assignment)
	}
	for st := range g.streams {
		st.finish(errGone(name), "")
	}
}

// touch makes the streams of a group look again at one resource.
func (s *Server) touch(g *group, k kind, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &change{}
	c.names[k] = []string{name}
	for st := range g.streams {
		st.update(g.snap, c)
	}
}
