// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package decode turns custom resources and Kubernetes objects into the objects of the mesh model: names, references,
// mesh membership and label selectors resolved. It has no client and reads no files, so every input that has Kubernetes
// objects (manifests on disk, a cluster) may call it.
//
// It works incrementally: only what depends on a change is decoded again.
package decode

import (
	"maps"
	"reflect"
	"slices"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// Options are the choices of the control plane's operator that decoding needs.
type Options struct {
	// DefaultMesh is the name of the Mesh object to which v1beta1 objects belong that name none; empty for none.
	DefaultMesh string
}

// Decoder holds the Kubernetes objects of one source and what they mean. It is not safe for concurrent use.
type Decoder struct {
	options Options
	graph   *graph
	// members lists the objects that the indexes name: all meshes, the nodes of a namespace ...
	members map[cellKey]map[ID]struct{}
	// claimants are the objects that claim a name in the model.
	claimants map[mesh.Key]map[ID]struct{}
	// provider is the object whose decoding made the model object under a key.
	provider map[mesh.Key]ID
	// made is what has been reported under each key.
	made map[mesh.Key]mesh.Object
	// next holds what this flush changes; nil for removed.
	next map[mesh.Key]mesh.Object
	// touched are the objects whose findings may have changed.
	touched map[ID]struct{}
	// reported is the source under which the findings of an object were last reported, and those findings.
	reported map[ID]report
}

type report struct {
	source   mesh.Source
	findings []mesh.Finding
}

// New returns an empty decoder.
func New(options Options) *Decoder {
	d := &Decoder{
		options:   options,
		members:   map[cellKey]map[ID]struct{}{},
		claimants: map[mesh.Key]map[ID]struct{}{},
		provider:  map[mesh.Key]ID{},
		made:      map[mesh.Key]mesh.Object{},
		next:      map[mesh.Key]mesh.Object{},
		touched:   map[ID]struct{}{},
		reported:  map[ID]report{},
	}
	d.graph = newGraph(d.compute, d.changed)
	return d
}

// Set adds an object or replaces the one of the same ID. It reports false for a kind that means nothing to the mesh.
// Neither side may change the object afterwards.
func (d *Decoder) Set(object Object) bool {
	in, ok := newInput(object)
	if ok {
		d.place(in)
	}
	return ok
}

// place puts an object where it is read, and has what depends on it computed.
func (d *Decoder) place(in *input) {
	d.graph.put(cellKey{stage: stageInput, id: in.id}, in)
	for _, key := range derived(in.id) {
		d.graph.touch(key)
	}
	for _, index := range indexes(in.id) {
		list := d.members[index]
		if list == nil {
			list = map[ID]struct{}{}
			d.members[index] = list
		}
		if _, had := list[in.id]; !had {
			list[in.id] = struct{}{}
			d.graph.touch(index)
		}
	}
	d.touched[in.id] = struct{}{}
}

// Delete removes an object; one that is not there is no fault.
func (d *Decoder) Delete(id ID) {
	key := cellKey{stage: stageInput, id: id}
	if d.graph.value(key) == nil {
		return
	}
	d.graph.put(key, nil)
	for _, index := range indexes(id) {
		delete(d.members[index], id)
		if len(d.members[index]) == 0 {
			delete(d.members, index)
		}
		d.graph.touch(index)
	}
	d.touched[id] = struct{}{}
}

// Flush decodes what changed since the last Flush and returns the difference: model objects, and the findings of each
// object for which they differ. Lists are sorted.
func (d *Decoder) Flush() mesh.Changes {
	d.graph.run()
	var changes mesh.Changes
	for _, key := range slices.SortedFunc(maps.Keys(d.next), mesh.Key.Compare) {
		object, old := d.next[key], d.made[key]
		switch {
		case object == nil && old != nil:
			changes.Removed = append(changes.Removed, key)
			delete(d.made, key)
		case object != nil && !reflect.DeepEqual(object, old):
			changes.Set = append(changes.Set, object)
			d.made[key] = object
		}
	}
	for id := range d.touched {
		d.report(id, &changes)
	}
	// A map that once was large stays slow to walk and to clear, so each flush begins with new ones.
	d.next, d.touched = map[mesh.Key]mesh.Object{}, map[ID]struct{}{}
	return changes
}

// report adds the findings of one object to changes where they are not those of the last time.
func (d *Decoder) report(id ID, changes *mesh.Changes) {
	last, had := d.reported[id]
	var now report
	if in, ok := d.graph.value(cellKey{stage: stageInput, id: id}).(*input); ok {
		now.source = in.source.Identity()
		now.findings = slices.Clone(in.findings)
		for _, key := range derived(id) {
			if found, ok := d.graph.value(key).(finder); ok {
				now.findings = append(now.findings, found.found()...)
			}
		}
		now.findings = mesh.SortFindings(now.findings)
	}
	if had && last.source == now.source && slices.Equal(last.findings, now.findings) {
		return
	}
	if changes.Findings == nil {
		changes.Findings = map[mesh.Source][]mesh.Finding{}
	}
	if had && last.source != now.source {
		if _, taken := changes.Findings[last.source]; !taken {
			changes.Findings[last.source] = nil
		}
	}
	if len(now.findings) == 0 {
		delete(d.reported, id)
		if had && last.source == now.source {
			changes.Findings[now.source] = nil
		}
	} else {
		d.reported[id] = now
		changes.Findings[now.source] = now.findings
	}
	if len(changes.Findings) == 0 {
		changes.Findings = nil
	}
}

// finder is a computed value that carries findings.
type finder interface{ found() []mesh.Finding }

// content is what an object means to the model.
type content struct {
	objects  []mesh.Object
	findings []mesh.Finding
}

func (c *content) found() []mesh.Finding { return c.findings }

// compute is the decoding of one cell; each stage reads earlier ones alone.
func (d *Decoder) compute(key cellKey, r *reader) any {
	switch key.stage {
	case stageIndex:
		return slices.SortedFunc(maps.Keys(d.members[key]), ID.Compare)
	case stageMesh:
		return factsOf(r, key.id)
	case stageNamespace:
		return meshesOf(r, key.id.Name)
	case stageIdentity:
		return d.identify(r, key.id)
	case stageGateway:
		return gatewayFacts(r, key.id)
	case stageBinding:
		return d.bind(r, key.id)
	case stageListener:
		return firstListener(r, key.id)
	case stageClaim:
		return winner(r, slices.Collect(maps.Keys(d.claimants[key.claim])))
	case stageContent:
		return decodeContent(r, key.id)
	case stageMembers:
		return rosterOf(r, key.id.Namespace)
	case stageWorkload:
		return workloads(r, key.id)
	default:
		return nil
	}
}

// changed follows a change of a cell's value: claims move, model objects come and go.
func (d *Decoder) changed(key cellKey, old, value any) {
	switch key.stage {
	case stageMesh, stageIdentity, stageBinding:
		d.moveClaims(key.id, claims(old), claims(value))
		d.touched[key.id] = struct{}{}
	case stageContent, stageWorkload:
		before, _ := old.(*content)
		after, _ := value.(*content)
		d.replace(key.id, before, after)
		d.touched[key.id] = struct{}{}
	default:
		// The other stages are read by these alone.
	}
}

func (d *Decoder) moveClaims(id ID, before, after []mesh.Key) {
	for _, key := range before {
		if slices.Contains(after, key) {
			continue
		}
		delete(d.claimants[key], id)
		if len(d.claimants[key]) == 0 {
			delete(d.claimants, key)
		}
		d.graph.touch(cellKey{stage: stageClaim, claim: key})
	}
	for _, key := range after {
		if d.claimants[key] == nil {
			d.claimants[key] = map[ID]struct{}{}
		}
		d.claimants[key][id] = struct{}{}
		d.graph.touch(cellKey{stage: stageClaim, claim: key})
	}
}

// replace puts what id means now in the place of what it meant. A key that another object has taken over stays.
func (d *Decoder) replace(id ID, before, after *content) {
	kept := map[mesh.Key]struct{}{}
	if after != nil {
		for _, object := range after.objects {
			key := object.Key()
			kept[key] = struct{}{}
			d.provider[key] = id
			d.next[key] = object
		}
	}
	if before == nil {
		return
	}
	for _, object := range before.objects {
		key := object.Key()
		if _, ok := kept[key]; ok || d.provider[key] != id {
			continue
		}
		delete(d.provider, key)
		d.next[key] = nil
	}
}
