// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package scenario is the data that a playground runs: manifests, steps and what is expected of them, read from a
// directory with a scenario.yaml. Only package playground and its parts call it.
package scenario

import (
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// File is the name of the scenario's description in its directory.
const File = "scenario.yaml"

// What a scenario.yaml calls itself.
const (
	APIVersion = "playground.tulle/v1alpha1"
	Kind       = "Scenario"
)

// Scenario is what scenario.yaml says, and the manifests that it names.
type Scenario struct {
	// APIVersion and Kind keep programs that read manifests from taking the file for one of theirs; see the constants.
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Name is one word; Description one line.
	Name        string `json:"name"`
	Description string `json:"description"`
	// Namespace is where objects without one go, and where workloads are looked for.
	Namespace string `json:"namespace"`
	// IPFamilies are those of Services that name none themselves: IPv4, IPv6 or both; IPv4 if empty.
	IPFamilies []string `json:"ipFamilies,omitempty"`
	// Apps says what stands in for a container image: the image's name without registry and tag, to the name of a
	// stand-in. Only "response", which answers with the variable HW_RESPONSE, exists.
	Apps map[string]string `json:"apps"`
	// Steps are done in their order.
	Steps []Step `json:"steps"`
	// Manifests are the files that the steps apply.
	Manifests map[string][]byte `json:"-"`
}

// Step does one thing: exactly one field besides Name is set.
type Step struct {
	// Name says what is done, for people.
	Name         string        `json:"name"`
	Apply        *Apply        `json:"apply,omitempty"`
	ControlPlane *ControlPlane `json:"controlPlane,omitempty"`
	Restart      *Restart      `json:"restart,omitempty"`
	Expect       []Expectation `json:"expect,omitempty"`
	Load         *Load         `json:"load,omitempty"`
	Split        []Split       `json:"split,omitempty"`
	StopLoad     *StopLoad     `json:"stopLoad,omitempty"`
}

// Apply does what kubectl apply does, and waits until the pods that come of it are ready and every proxy has
// acknowledged what it means for it.
type Apply struct {
	Files []string `json:"files"`
	// Kinds takes only the objects of these kinds from the files; all if empty.
	Kinds []string `json:"kinds,omitempty"`
	// Acknowledged, if set, makes a check of the time from the write to the last proxy's acknowledgement.
	Acknowledged *Acknowledged `json:"acknowledged,omitempty"`
}

// Acknowledged is the expectation that proxies take a change over in time.
type Acknowledged struct {
	Check string `json:"check"`
	// Within is the time allowed, in milliseconds.
	WithinMillis int `json:"withinMillis"`
}

// ControlPlane starts Tulle.
type ControlPlane struct{}

// Restart replaces the pods of the workloads, as kubectl rollout restart does. New pods get a sidecar if their namespace
// asks for it.
type Restart struct {
	Workloads []string `json:"workloads"`
}

// Expectation is one request and what has to come of it.
type Expectation struct {
	Check string `json:"check"`
	// From is the workload whose first pod sends the request.
	From string `json:"from"`
	URL  string `json:"url"`
	// Status, Body and Server are what the response must have; an empty one may be anything.
	Status int    `json:"status,omitempty"`
	Body   string `json:"body,omitempty"`
	Server string `json:"server,omitempty"`
	// Connection, in place of a response: refused, or closed after it was accepted.
	Connection string `json:"connection,omitempty"`
}

// Load sends requests from now on until StopLoad, half of them on connections that are kept, half on new ones.
type Load struct {
	From    string   `json:"from"`
	Targets []Target `json:"targets"`
	// Rate is in requests a second, of each target.
	Rate int `json:"rate"`
}

// Target is an address that gets load.
type Target struct {
	Name string `json:"name"`
	URL  string `json:"url"`
}

// Split is how the load's responses from one target have to divide, of those requests that begin after this step does.
type Split struct {
	Check  string `json:"check"`
	Target string `json:"target"`
	// Requests is the least number to count.
	Requests int `json:"requests"`
	// Sigmas is the tolerance in standard deviations of the binomial distribution; 4 if 0.
	Sigmas float64 `json:"sigmas,omitempty"`
	Shares []Share `json:"shares"`
}

// Share is a body and its weight among all.
type Share struct {
	Body   string `json:"body"`
	Weight int    `json:"weight"`
}

// StopLoad ends the load and judges it.
type StopLoad struct {
	Check string `json:"check"`
	// MaxFailures is how many requests may have had no 200 since the load began.
	MaxFailures int `json:"maxFailures"`
}

// Read reads a scenario from its directory.
func Read(dir fs.FS) (*Scenario, error) {
	data, err := fs.ReadFile(dir, File)
	if err != nil {
		return nil, fmt.Errorf("a scenario is a directory with a %s: %w", File, err)
	}
	s := &Scenario{Manifests: map[string][]byte{}}
	if err := yaml.UnmarshalStrict(data, s); err != nil {
		return nil, fmt.Errorf("%s: %s", File, strings.TrimPrefix(err.Error(), "error unmarshaling JSON: "))
	}
	if err := s.validate(); err != nil {
		return nil, fmt.Errorf("%s: %w", File, err)
	}
	for i, step := range s.Steps {
		if step.Apply == nil {
			continue
		}
		for _, name := range step.Apply.Files {
			if s.Manifests[name], err = fs.ReadFile(dir, name); err != nil {
				return nil, fmt.Errorf("%s: steps[%d].apply.files: %w", File, i, err)
			}
		}
	}
	return s, nil
}

// Checks lists the names of the scenario's checks in their order, each once.
func (s *Scenario) Checks() []string {
	var names []string
	add := func(name string) {
		if name != "" && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	for _, step := range s.Steps {
		for _, e := range step.Expect {
			add(e.Check)
		}
		for _, p := range step.Split {
			add(p.Check)
		}
		if step.Apply != nil && step.Apply.Acknowledged != nil {
			add(step.Apply.Acknowledged.Check)
		}
		if step.StopLoad != nil {
			add(step.StopLoad.Check)
		}
	}
	return names
}
