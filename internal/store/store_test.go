// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package store_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/tulle-mesh/tulle/internal/mesh"
	"github.com/tulle-mesh/tulle/internal/store"
)

func route(router, name string, position int) *mesh.Route {
	return &mesh.Route{Meta: mesh.Meta{MeshName: "m", Name: name}, RouterName: router, Position: position}
}

func TestASnapshotDoesNotChangeWhenTheStoreDoes(t *testing.T) {
	t.Parallel()
	s := store.New(mesh.Options{})
	s.Apply(mesh.Changes{Set: []mesh.Object{route("r", "a", 1), route("r", "c", 1)}})
	before := s.Snapshot()
	s.Apply(mesh.Changes{
		Set:     []mesh.Object{route("r", "b", 1), route("r", "c", 2)},
		Removed: []mesh.Key{mesh.RouteKey("m", "r", "a")},
	})
	if got := names(before.Children(mesh.RouteKey("m", "r", ""))); !slices.Equal(got, []string{"a@1", "c@1"}) {
		t.Errorf("the old snapshot now lists %v", got)
	}
	if got := names(s.Snapshot().Children(mesh.RouteKey("m", "r", ""))); !slices.Equal(got, []string{"b@1", "c@2"}) {
		t.Errorf("the new snapshot lists %v", got)
	}
	if before.Get(mesh.RouteKey("m", "r", "a")) == nil || s.Snapshot().Get(mesh.RouteKey("m", "r", "a")) != nil {
		t.Error("route a should be in the old snapshot and not in the new one")
	}
}

// TestRandomStepsEqualAMap compares the shared, sharded structure with the plain one that it stands for.
func TestRandomStepsEqualAMap(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	s := store.New(mesh.Options{})
	want := map[mesh.Key]mesh.Object{}
	for step := range 2000 {
		var c mesh.Changes
		seen := map[mesh.Key]bool{}
		for range 1 + rng.IntN(4) {
			o := route(fmt.Sprint("r", rng.IntN(3)), fmt.Sprint("n", rng.IntN(20)), step)
			if seen[o.Key()] {
				continue
			}
			seen[o.Key()] = true
			if rng.IntN(3) == 0 {
				c.Removed = append(c.Removed, o.Key())
				delete(want, o.Key())
				continue
			}
			c.Set = append(c.Set, o)
			want[o.Key()] = o
		}
		s.Apply(c)
	}
	got := s.Snapshot()
	if got.Len() != len(want) || len(got.Keys()) != len(want) {
		t.Fatalf("%d objects (%d keys), want %d", got.Len(), len(got.Keys()), len(want))
	}
	for k, o := range want {
		if got.Get(k) != o {
			t.Errorf("%v: wrong object", k)
		}
		if !slices.Contains(got.Children(k), o) {
			t.Errorf("%v: not in its router's list", k)
		}
	}
}

func TestAWatchGathersKeysUntilItIsRead(t *testing.T) {
	t.Parallel()
	s := store.New(mesh.Options{})
	w := s.Watch()
	defer w.Close()
	early, late := time.Unix(10, 0), time.Unix(20, 0)
	s.Apply(mesh.Changes{Since: early, Set: []mesh.Object{route("r", "a", 1)}})
	s.Apply(mesh.Changes{Since: late, Set: []mesh.Object{route("r", "a", 2), route("r", "b", 1)}})
	<-w.Ready()
	keys, since := w.Take()
	if len(keys) != 2 || !since.Equal(early) {
		t.Errorf("took %v since %v, want two keys since %v", keys, since, early)
	}
	select {
	case <-w.Ready():
		t.Error("ready again although nothing changed")
	default:
	}
}

func TestFindingsAreReplacedByTheirSource(t *testing.T) {
	t.Parallel()
	s := store.New(mesh.Options{})
	src := mesh.Source{Kind: "VirtualNode", Namespace: "prod", Name: "dj"}
	moved := src
	moved.File, moved.Line = "b.yaml", 7
	s.Apply(mesh.Changes{Findings: map[mesh.Source][]mesh.Finding{src: {{Message: "one"}, {Message: "two"}}}})
	s.Apply(mesh.Changes{Findings: map[mesh.Source][]mesh.Finding{moved: {{Message: "three"}}}})
	if got := s.Findings(); len(got) != 1 || got[0].Message != "three" {
		t.Errorf("findings are %v, want the last one alone", got)
	}
	s.Apply(mesh.Changes{Findings: map[mesh.Source][]mesh.Finding{src: nil}})
	if got := s.Findings(); len(got) != 0 {
		t.Errorf("findings are %v, want none", got)
	}
}

func names(objects []mesh.Object) []string {
	var list []string
	for _, o := range objects {
		r, ok := o.(*mesh.Route)
		if ok {
			list = append(list, fmt.Sprintf("%s@%d", r.Name, r.Position))
		}
	}
	return list
}
