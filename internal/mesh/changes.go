// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import "time"

// Changes is a step from one state of the model to the next, as an input reports it.
type Changes struct {
	// Since is when the change reached the input; the zero time leaves latency unmeasured.
	Since time.Time
	// Set are objects that are new or differ from before.
	Set []Object
	// Removed are objects that are gone. A key is never in both lists.
	Removed []Key
	// Findings replaces what is known of each source object (by Source.Identity) that is named; an empty list clears it.
	Findings map[Source][]Finding
}

// Empty says whether there is nothing in c.
func (c Changes) Empty() bool { return len(c.Set) == 0 && len(c.Removed) == 0 && len(c.Findings) == 0 }

// Reader gives the objects of one state of the model. A Reader never changes.
type Reader interface {
	// Get returns the object under key, or nil.
	Get(key Key) Object
	// Children returns all objects of list's kind, mesh and parent (see Key.List), sorted by name.
	Children(list Key) []Object
	// Options are the choices that hold for all meshes.
	Options() Options
}

// Options are the choices of the control plane's operator that the model needs.
type Options struct {
	// ClusterDomain is the DNS domain of the cluster's Services; empty is "cluster.local".
	ClusterDomain string
	// Region and AccountID are the parts of ARNs, which are names alone here.
	Region    string
	AccountID string
}

// Domain returns the cluster's DNS domain.
func (o Options) Domain() string {
	if o.ClusterDomain == "" {
		return "cluster.local"
	}
	return o.ClusterDomain
}
