// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package xds

import (
	"runtime"
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
)

func TestEqualContentIsHeldOnce(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	made := func(tag string) *Resource {
		r, err := NewResource("c", &clusterv3.Cluster{Name: "c", AltStatName: tag}, Traits{Origin: tag})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	a, b, c := made("1"), made("1"), made("2")
	s.Apply(Update{Groups: map[string]*Config{"a": {Clusters: []*Resource{a}}, "b": {Clusters: []*Resource{b}}, "c": {Clusters: []*Resource{c}}}})
	if a.content.Load() != b.content.Load() || a.content.Load() == c.content.Load() {
		t.Error("equal content is held twice, or different content once")
	}
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
	runtime.KeepAlive(c)
	s.Apply(Update{Groups: map[string]*Config{"a": nil, "b": nil, "c": nil}})
	for range 1000 {
		runtime.GC()
		s.pool.mu.Lock()
		n := len(s.pool.held)
		s.pool.mu.Unlock()
		if n == 0 {
			return
		}
		time.Sleep(time.Millisecond) // cleanups run beside the collector
	}
	t.Error("the pool keeps content that nobody has")
}

func TestNothingStaysOfGroupsAndEndpointsThatAreGone(t *testing.T) {
	t.Parallel()
	s := New(Options{})
	c, err := NewResource("c", &clusterv3.Cluster{Name: "c"}, Traits{Endpoints: "e"})
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(Update{Groups: map[string]*Config{"a": {Clusters: []*Resource{c}}, "b": {Clusters: []*Resource{c}}}})
	if len(s.assignments) != 1 || len(s.assignments["e"].groups) != 2 {
		t.Fatalf("assignments %v", s.assignments)
	}
	s.Apply(Update{Groups: map[string]*Config{"a": {}}})
	s.Apply(Update{Groups: map[string]*Config{"b": nil}, Endpoints: map[string]*Resource{"x": nil}})
	if len(s.assignments) != 0 || len(s.groups) != 1 {
		t.Errorf("assignments %v, groups %v", s.assignments, s.groups)
	}
}
