// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package scenario

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// faults gathers what is wrong, each with the path of its field.
type faults struct {
	path string
	all  *[]error
}

func (f faults) at(format string, args ...any) faults {
	return faults{path: strings.TrimPrefix(f.path+"."+fmt.Sprintf(format, args...), "."), all: f.all}
}

func (f faults) add(format string, args ...any) {
	*f.all = append(*f.all, fmt.Errorf("%s: %s", f.path, fmt.Sprintf(format, args...)))
}

func (f faults) need(field, value string) {
	if value == "" {
		f.at("%s", field).add("is missing")
	}
}

var oneWord = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`)

func (s *Scenario) validate() error {
	var all []error
	f := faults{all: &all}
	if s.APIVersion != APIVersion || s.Kind != Kind {
		f.at("apiVersion").add("%q and kind %q: use %s and %s", s.APIVersion, s.Kind, APIVersion, Kind)
	}
	if !oneWord.MatchString(s.Name) {
		f.at("name").add("%q: use lower case letters, digits and dashes", s.Name)
	}
	f.need("namespace", s.Namespace)
	for image, app := range s.Apps {
		if app != "response" {
			f.at("apps.%s", image).add("%q is unknown: only response exists", app)
		}
	}
	for i, family := range s.IPFamilies {
		if family != "IPv4" && family != "IPv6" {
			f.at("ipFamilies[%d]", i).add("%q: use IPv4 or IPv6", family)
		}
	}
	if len(s.Steps) == 0 {
		f.at("steps").add("is empty")
	}
	w := walk{}
	for i, step := range s.Steps {
		w.step(f.at("steps[%d]", i), step)
	}
	if w.targets != nil {
		f.at("steps").add("the load is never stopped: add a stopLoad step")
	}
	return errors.Join(all...)
}

// walk knows what the steps so far have led to.
type walk struct {
	controlPlane bool
	targets      []string
}

func (w *walk) step(f faults, s Step) {
	f.need("name", s.Name)
	set := 0
	for _, is := range []bool{s.Apply != nil, s.ControlPlane != nil, s.Restart != nil, s.Expect != nil, s.Load != nil, s.Split != nil, s.StopLoad != nil} {
		if is {
			set++
		}
	}
	switch {
	case set != 1:
		f.add("has %d actions: give exactly one of apply, controlPlane, restart, expect, load, split, stopLoad", set)
	case s.Apply != nil:
		w.apply(f.at("apply"), s.Apply)
	case s.ControlPlane != nil:
		if w.controlPlane {
			f.at("controlPlane").add("is started already")
		}
		w.controlPlane = true
	case s.Restart != nil:
		if len(s.Restart.Workloads) == 0 {
			f.at("restart.workloads").add("is empty")
		}
	case s.Expect != nil:
		for i, e := range s.Expect {
			expectation(f.at("expect[%d]", i), e)
		}
	case s.Load != nil:
		w.load(f.at("load"), s.Load)
	case s.Split != nil:
		for i, p := range s.Split {
			w.split(f.at("split[%d]", i), p)
		}
	case s.StopLoad != nil:
		w.stopLoad(f.at("stopLoad"), s.StopLoad)
	}
}

func (w *walk) apply(f faults, a *Apply) {
	if len(a.Files) == 0 {
		f.at("files").add("is empty")
	}
	if a.Acknowledged == nil {
		return
	}
	f.at("acknowledged").need("check", a.Acknowledged.Check)
	if a.Acknowledged.WithinMillis <= 0 {
		f.at("acknowledged.withinMillis").add("%d: use a number above 0", a.Acknowledged.WithinMillis)
	}
	if !w.controlPlane {
		f.at("acknowledged").add("nobody acknowledges before a controlPlane step")
	}
}

func expectation(f faults, e Expectation) {
	f.need("check", e.Check)
	f.need("from", e.From)
	address(f.at("url"), e.URL)
	switch e.Connection {
	case "":
		if e.Status == 0 && e.Body == "" && e.Server == "" {
			f.add("expects nothing: give status, body, server or connection")
		}
	case "refused", "closed":
		if e.Status != 0 || e.Body != "" || e.Server != "" {
			f.add("expects a response and none: give connection alone, or status, body and server")
		}
	default:
		f.at("connection").add("%q: use refused or closed", e.Connection)
	}
}

func (w *walk) load(f faults, l *Load) {
	f.need("from", l.From)
	if w.targets != nil {
		f.add("one load runs already: stop it first")
	}
	if l.Rate < 1 || l.Rate > 10_000 {
		f.at("rate").add("%d: use 1 to 10000 requests a second", l.Rate)
	}
	if len(l.Targets) == 0 {
		f.at("targets").add("is empty")
	}
	for i, t := range l.Targets {
		f.at("targets[%d]", i).need("name", t.Name)
		if slices.Contains(w.targets, t.Name) {
			f.at("targets[%d].name", i).add("%q is used twice", t.Name)
		}
		address(f.at("targets[%d].url", i), t.URL)
		w.targets = append(w.targets, t.Name)
	}
}

func (w *walk) split(f faults, p Split) {
	f.need("check", p.Check)
	if !slices.Contains(w.targets, p.Target) {
		f.at("target").add("%q: the load has no such target", p.Target)
	}
	if p.Requests < 1 {
		f.at("requests").add("%d: use a number above 0", p.Requests)
	}
	if p.Sigmas < 0 {
		f.at("sigmas").add("%g: use a number above 0", p.Sigmas)
	}
	if len(p.Shares) == 0 {
		f.at("shares").add("is empty")
	}
	sum := 0
	for i, s := range p.Shares {
		f.at("shares[%d]", i).need("body", s.Body)
		if s.Weight < 0 {
			f.at("shares[%d].weight", i).add("%d: use 0 or more", s.Weight)
		}
		sum += s.Weight
	}
	if sum <= 0 {
		f.at("shares").add("have no weight")
	}
}

func (w *walk) stopLoad(f faults, s *StopLoad) {
	f.need("check", s.Check)
	if w.targets == nil {
		f.add("no load runs")
	}
	if s.MaxFailures < 0 {
		f.at("maxFailures").add("%d: use 0 or more", s.MaxFailures)
	}
	w.targets = nil
}

func address(f faults, text string) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		f.add("%q: use http://HOST[:PORT]/PATH", text)
	}
}
