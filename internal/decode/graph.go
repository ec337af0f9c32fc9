// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"reflect"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// stage is a step of decoding. A cell of one stage reads cells of earlier stages alone, so one pass in order suffices.
type stage uint8

const (
	// stageInput holds the objects as they were given.
	stageInput stage = iota
	// stageIndex holds lists of objects: all meshes, all gateways, the nodes or services of a namespace.
	stageIndex
	// stageListener holds the first listener of a node.
	stageListener
	// stageMesh holds the App Mesh name and the namespaces of a Mesh.
	stageMesh
	// stageNamespace holds the Meshes that a namespace belongs to.
	stageNamespace
	// stageIdentity holds the mesh and the App Mesh name of an object.
	stageIdentity
	// stageGateway holds which routes a gateway takes.
	stageGateway
	// stageBinding holds the mesh, the gateway and the App Mesh name of a GatewayRoute.
	stageBinding
	// stageClaim holds which object has a name in the model.
	stageClaim
	// stageContent holds what an object means to the model.
	stageContent
	// stageMembers holds the nodes and gateways of a namespace, as their pods see them.
	stageMembers
	// stageWorkload holds the nodes of which a pod is a member.
	stageWorkload
	stages
)

// lazy stages are computed when they are first read, and forgotten when nobody reads them any more. The others are
// computed for as long as their object is there.
func (s stage) lazy() bool {
	switch s {
	case stageIndex, stageListener, stageNamespace, stageMembers:
		return true
	default:
		return false
	}
}

// cellKey names a cell: by object, or by the name in the model that objects claim.
type cellKey struct {
	stage stage
	id    ID
	claim mesh.Key
}

// cell is a value that was computed, the cells it was computed from, and those computed from it.
type cell struct {
	value   any
	reads   []cellKey
	readers map[cellKey]struct{}
	// computed is set once the value of a lazy cell is known.
	computed bool
}

// graph holds values and what they were computed from, so that a change reaches just what depends on it.
type graph struct {
	cells   map[cellKey]*cell
	dirty   [stages]map[cellKey]struct{}
	compute func(cellKey, *reader) any
	changed func(key cellKey, old, value any)
}

func newGraph(compute func(cellKey, *reader) any, changed func(key cellKey, old, value any)) *graph {
	g := &graph{cells: map[cellKey]*cell{}, compute: compute, changed: changed}
	for s := range g.dirty {
		g.dirty[s] = map[cellKey]struct{}{}
	}
	return g
}

// reader is how one computation reads the graph; what it reads it depends on.
type reader struct {
	graph *graph
	key   cellKey
	seen  map[cellKey]struct{}
	reads []cellKey
}

func (g *graph) value(key cellKey) any {
	if c := g.cells[key]; c != nil {
		return c.value
	}
	return nil
}

// put sets the value of a cell that is not computed; nil removes it.
func (g *graph) put(key cellKey, value any) {
	g.cell(key).value = value
	g.touchReaders(key)
	g.prune(key)
}

// touch has a cell computed at the next run; a lazy one only if somebody reads it.
func (g *graph) touch(key cellKey) {
	if key.stage.lazy() && g.cells[key] == nil {
		return
	}
	g.dirty[key.stage][key] = struct{}{}
}

func (g *graph) touchReaders(key cellKey) {
	for reader := range g.cells[key].readers {
		g.touch(reader)
	}
}

func (g *graph) cell(key cellKey) *cell {
	c := g.cells[key]
	if c == nil {
		c = &cell{readers: map[cellKey]struct{}{}}
		g.cells[key] = c
	}
	return c
}

// prune drops a cell that says nothing, or that is lazy, and that nobody reads.
func (g *graph) prune(key cellKey) {
	c := g.cells[key]
	if c == nil || len(c.readers) > 0 {
		return
	}
	if key.stage.lazy() {
		delete(g.cells, key)
		delete(g.dirty[key.stage], key)
		for _, read := range c.reads {
			g.unread(read, key)
		}
		return
	}
	if c.value == nil && len(c.reads) == 0 {
		delete(g.cells, key)
	}
}

// run computes all that is dirty, stage by stage.
func (g *graph) run() {
	for s := range g.dirty {
		for len(g.dirty[s]) > 0 {
			batch := g.dirty[s]
			g.dirty[s] = map[cellKey]struct{}{}
			for key := range batch {
				g.update(key)
			}
		}
	}
}

func (g *graph) update(key cellKey) {
	r := &reader{graph: g, key: key, seen: map[cellKey]struct{}{}}
	value := g.compute(key, r)
	if isNil(value) {
		value = nil
		r.forgetIfGone()
	}
	c := g.cell(key)
	c.computed = true
	for _, read := range c.reads {
		if _, still := r.seen[read]; !still {
			g.unread(read, key)
		}
	}
	c.reads = r.reads
	old := c.value
	if !reflect.DeepEqual(old, value) {
		c.value = value
		g.changed(key, old, value)
		g.touchReaders(key)
	}
	g.prune(key)
}

// unread takes a reader from a cell.
func (g *graph) unread(read, reader cellKey) {
	if c := g.cells[read]; c != nil {
		delete(c.readers, reader)
		g.prune(read)
	}
}

// forgetIfGone drops all reads of a cell whose object is gone: the cell comes back with the object.
func (r *reader) forgetIfGone() {
	own := cellKey{stage: stageInput, id: r.key.id}
	if _, reads := r.seen[own]; !reads || r.graph.value(own) != nil {
		return
	}
	for _, read := range r.reads {
		r.graph.unread(read, r.key)
	}
	r.reads = nil
	clear(r.seen)
}

// isNil says whether a value is nil, or a nil pointer or slice in an interface.
func isNil(value any) bool {
	if value == nil {
		return true
	}
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice:
		return v.IsNil()
	default:
		return false
	}
}

// read returns the value of a cell, and the zero value where it has none of that type.
func read[T any](r *reader, key cellKey) T {
	c := r.graph.cell(key)
	if _, had := r.seen[key]; !had {
		r.seen[key] = struct{}{}
		r.reads = append(r.reads, key)
		c.readers[r.key] = struct{}{}
	}
	if key.stage.lazy() && !c.computed {
		r.graph.update(key)
	}
	value, _ := c.value.(T)
	return value
}
