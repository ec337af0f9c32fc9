// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package store

import (
	"cmp"
	"hash/maphash"
	"maps"
	"slices"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// shardCount trades the cost of a change (one shard is copied) against that of an empty snapshot. 1024 keeps a change in a mesh of 10,000 objects to copying about ten entries.
const shardCount = 1024

// Snapshot is one state of the model. It never changes, so any number of goroutines may read it.
type Snapshot struct {
	opts     mesh.Options
	size     int
	objects  [shardCount]map[mesh.Key]mesh.Object
	children [shardCount]map[mesh.Key][]mesh.Object
}

var _ mesh.Reader = (*Snapshot)(nil)

// seed is per process: no output depends on the order of a shard.
var seed = maphash.MakeSeed()

func shardOf(k mesh.Key) int { return int(maphash.Comparable(seed, k) % shardCount) }

// Options are the choices that hold for all meshes.
func (s *Snapshot) Options() mesh.Options { return s.opts }

// Get returns the object under key, or nil.
func (s *Snapshot) Get(key mesh.Key) mesh.Object { return s.objects[shardOf(key)][key] }

// Children returns the objects of list's kind, mesh and parent, sorted by name: the routes of a router or gateway, the slices of a Service, the workloads of a node.
// Other kinds have no lists, which would cost as much as the mesh is large. The caller must not change the slice.
func (s *Snapshot) Children(list mesh.Key) []mesh.Object {
	list = list.List()
	return s.children[shardOf(list)][list]
}

// Len counts the objects.
func (s *Snapshot) Len() int { return s.size }

// Keys returns the keys of all objects, sorted; for tools that print or check the whole model.
func (s *Snapshot) Keys() []mesh.Key {
	keys := make([]mesh.Key, 0, s.size)
	for _, shard := range s.objects {
		for k := range shard {
			keys = append(keys, k)
		}
	}
	slices.SortFunc(keys, mesh.Key.Compare)
	return keys
}

// edit begins a next state that shares with s all that does not change.
func (s *Snapshot) edit() *edit {
	next := *s
	return &edit{next: &next, owned: map[int]bool{}, ownedShards: map[int]bool{}, ownedLists: map[mesh.Key]bool{}}
}

type edit struct {
	next *Snapshot
	// owned, ownedShards and ownedLists are the object shards, list shards and lists that this edit has copied and may write to.
	owned, ownedShards map[int]bool
	ownedLists         map[mesh.Key]bool
}

func (e *edit) done() *Snapshot { return e.next }

func (e *edit) set(o mesh.Object) {
	k := o.Key()
	shard := e.shard(k)
	if _, ok := shard[k]; !ok {
		e.next.size++
	}
	shard[k] = o
	if !listed(k.Kind) {
		return
	}
	lists, list := e.list(k)
	i, found := slices.BinarySearchFunc(lists[list], k, byKey)
	if found {
		lists[list][i] = o
		return
	}
	lists[list] = slices.Insert(lists[list], i, o)
}

func (e *edit) remove(k mesh.Key) {
	shard := e.shard(k)
	if _, ok := shard[k]; !ok {
		return
	}
	e.next.size--
	delete(shard, k)
	if !listed(k.Kind) {
		return
	}
	lists, list := e.list(k)
	if i, found := slices.BinarySearchFunc(lists[list], k, byKey); found {
		lists[list] = slices.Delete(lists[list], i, i+1)
	}
	if len(lists[list]) == 0 {
		delete(lists, list)
	}
}

func (e *edit) shard(k mesh.Key) map[mesh.Key]mesh.Object {
	i := shardOf(k)
	if !e.owned[i] {
		e.owned[i] = true
		e.next.objects[i] = clone(e.next.objects[i])
	}
	return e.next.objects[i]
}

// list returns the shard of k's list, in which that list may be written to in place.
func (e *edit) list(k mesh.Key) (map[mesh.Key][]mesh.Object, mesh.Key) {
	list := k.List()
	i := shardOf(list)
	if !e.ownedShards[i] {
		e.ownedShards[i] = true
		e.next.children[i] = clone(e.next.children[i])
	}
	if !e.ownedLists[list] {
		e.ownedLists[list] = true
		e.next.children[i][list] = slices.Clone(e.next.children[i][list])
	}
	return e.next.children[i], list
}

// clone is maps.Clone that turns nil into an empty map.
func clone[V any](m map[mesh.Key]V) map[mesh.Key]V {
	c := make(map[mesh.Key]V, len(m)+1)
	maps.Copy(c, m)
	return c
}

// listed says whether objects of a kind are found by their parent.
func listed(k mesh.Kind) bool {
	switch k {
	case mesh.KindRoute, mesh.KindGatewayRoute, mesh.KindEndpointSlice, mesh.KindWorkload:
		return true
	default:
		return false
	}
}

func byKey(o mesh.Object, k mesh.Key) int { return cmp.Compare(o.Key().Name, k.Name) }
