// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package scenario

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tulle-mesh/tulle/examples"
)

func TestEveryExampleIsSound(t *testing.T) {
	t.Parallel()
	for _, name := range examples.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := examples.Scenario(name)
			if err != nil {
				t.Fatal(err)
			}
			s, err := Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			if s.Name != name {
				t.Errorf("the scenario in %s calls itself %s", name, s.Name)
			}
			if diff := cmp.Diff([]string{"a", "b", "c", "d", "e"}, sorted(s.Checks())); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func sorted(words []string) []string {
	set := strings.Join(words, "")
	var all []string
	for _, c := range "abcdefghijklmnopqrstuvwxyz" {
		if strings.ContainsRune(set, c) {
			all = append(all, string(c))
		}
	}
	return all
}

func TestRead(t *testing.T) {
	t.Parallel()
	const head = "name: small\nnamespace: prod\nsteps:\n"
	const load = "- name: l\n  load: {from: dj, rate: 10, targets: [{name: jazz, url: 'http://jazz/'}]}\n"
	const stop = "- name: s\n  stopLoad: {check: c}\n"
	for name, tc := range map[string]struct {
		files map[string]string
		err   string // what the error must say; none if empty
	}{
		"a request is enough": {map[string]string{File: head + "- name: x\n  expect: [{check: a, from: dj, url: 'http://jazz/', status: 200}]\n"}, ""},
		"no description":      {nil, "a scenario is a directory with a scenario.yaml"},
		"an unknown field":    {map[string]string{File: head + "- title: x\n"}, `unknown field "title"`},
		"a wrong type":        {map[string]string{File: "name: [x]\n"}, "name of type string"},
		"a name of two words": {map[string]string{File: "name: a b\nnamespace: prod\nsteps: [{name: x, controlPlane: {}}]\n"}, `name: "a b": use lower case letters`},
		"no steps":            {map[string]string{File: "name: a\nnamespace: prod\n"}, "steps: is empty"},
		"two things in one step": {
			map[string]string{File: head + "- name: x\n  controlPlane: {}\n  restart: {workloads: [dj]}\n"}, "steps[0]: has 2 actions",
		},
		"a step that does nothing": {map[string]string{File: head + "- name: x\n"}, "steps[0]: has 0 actions"},
		"a file that is not there": {
			map[string]string{File: head + "- name: x\n  apply: {files: [a.yaml]}\n"}, "steps[0].apply.files: open a.yaml",
		},
		"a file outside the directory": {
			map[string]string{File: head + "- name: x\n  apply: {files: [../a.yaml]}\n"}, "steps[0].apply.files",
		},
		"an expectation of nothing": {
			map[string]string{File: head + "- name: x\n  expect: [{check: a, from: dj, url: 'http://jazz/'}]\n"}, "steps[0].expect[0]: expects nothing",
		},
		"a response and none": {
			map[string]string{File: head + "- name: x\n  expect: [{check: a, from: dj, url: 'http://jazz/', status: 200, connection: closed}]\n"}, "expects a response and none",
		},
		"an unknown fate of a connection": {
			map[string]string{File: head + "- name: x\n  expect: [{check: a, from: dj, url: 'http://jazz/', connection: lost}]\n"}, `connection: "lost": use refused or closed`,
		},
		"an address that is no URL": {
			map[string]string{File: head + "- name: x\n  expect: [{check: a, from: dj, url: 'jazz:9080', status: 200}]\n"}, `url: "jazz:9080": use http://`,
		},
		"an acknowledgement without a control plane": {
			map[string]string{File: head + "- name: x\n  apply: {files: [a.yaml], acknowledged: {check: e, withinMillis: 5}}\n", "a.yaml": ""}, "nobody acknowledges",
		},
		"a load that goes on for ever":   {map[string]string{File: head + load}, "the load is never stopped"},
		"a load that is stopped":         {map[string]string{File: head + load + stop}, ""},
		"two loads at a time":            {map[string]string{File: head + load + load + stop}, "steps[1].load: one load runs already"},
		"the end of no load":             {map[string]string{File: head + stop}, "steps[0].stopLoad: no load runs"},
		"a split of an unknown target":   {map[string]string{File: head + load + "- name: p\n  split: [{check: c, target: metal, requests: 5, shares: [{body: x, weight: 1}]}]\n" + stop}, `split[0].target: "metal": the load has no such target`},
		"a split without weights":        {map[string]string{File: head + load + "- name: p\n  split: [{check: c, target: jazz, requests: 5, shares: [{body: x, weight: 0}]}]\n" + stop}, "shares: have no weight"},
		"an unknown stand-in":            {map[string]string{File: "name: a\nnamespace: prod\napps: {x: redis}\nsteps: [{name: x, controlPlane: {}}]\n"}, `apps.x: "redis" is unknown`},
		"an unknown family of addresses": {map[string]string{File: "name: a\nnamespace: prod\nipFamilies: [IPv5]\nsteps: [{name: x, controlPlane: {}}]\n"}, `ipFamilies[0]: "IPv5"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := fstest.MapFS{}
			for file, text := range tc.files {
				if file == File {
					text = "apiVersion: playground.tulle/v1alpha1\nkind: Scenario\n" + text
				}
				dir[file] = &fstest.MapFile{Data: []byte(text)}
			}
			_, err := Read(dir)
			switch {
			case tc.err == "" && err != nil:
				t.Errorf("error %v", err)
			case tc.err != "" && (err == nil || !strings.Contains(err.Error(), tc.err)):
				t.Errorf("error %v, want one that says %q", err, tc.err)
			}
		})
	}
}
