// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package playground runs a scenario - manifests, steps, expectations - with real Envoys on one machine: no Kubernetes,
// no containers, and no change to the machine. Every workload gets a network namespace of its own. Package cli calls it.
package playground

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tulle-mesh/tulle/internal/playground/sandbox"
	"github.com/tulle-mesh/tulle/internal/playground/scenario"
)

// Options say what to run and with which programs.
type Options struct {
	// Scenario is a directory with a scenario.yaml and its manifests.
	Scenario fs.FS
	// Self is the argument vector, program name included, that leads this executable to Inside.
	Self []string
	// Tulle is the path of tulle, this executable if empty; Agent and Envoy are those of tulle-agent and envoy.
	Tulle, Agent, Envoy string
	// Path is where programs inside look for others, as in PATH; places where iptables often lies are added.
	Path string
	// Keep leaves everything running after the last step, until ctx ends.
	Keep bool
	// Progress receives a line for each thing that is done.
	Progress io.Writer
	// Stderr receives what the programs inside have to say when they fail badly.
	Stderr io.Writer
	// Finished, if set, is called with the report after the last step; with Keep that is long before Run returns.
	Finished func(Report, []Pod) error
}

// plan is what the program inside has to know.
type plan struct {
	Scenario  *scenario.Scenario
	Manifests map[string][]byte
	Dir       string
	Keep      bool
}

// event is one line from the program inside; one field is set.
type event struct {
	Progress string  `json:"progress,omitempty"`
	Report   *Report `json:"report,omitempty"`
	Error    string  `json:"error,omitempty"`
}

// Run runs the scenario. The error says why it could not be run to its end; whether what was expected came true is in
// the report alone. When ctx ends, or this process dies in whatever way, nothing stays behind.
func Run(ctx context.Context, o Options) (Report, error) {
	s, err := scenario.Read(o.Scenario)
	if err != nil {
		return Report{}, err
	}
	bind, err := programs(o)
	if err != nil {
		return Report{}, err
	}
	dir, err := sandbox.Scratch(slices.Collect(values(bind))...)
	if err != nil {
		return Report{}, err
	}
	data, err := json.Marshal(plan{Scenario: s, Manifests: s.Manifests, Dir: dir, Keep: o.Keep})
	if err != nil {
		return Report{}, fmt.Errorf("handing over the scenario: %w", err)
	}
	var report Report
	var inside, finished error
	err = sandbox.Run(ctx, sandbox.Config{
		Self: o.Self, Program: []string{roleDirector}, Bind: bind, Dir: dir, Plan: data, Stderr: o.Stderr,
		Env: []string{"PATH=" + strings.Join(append(filepath.SplitList(o.Path), sbin...), ":"), "HOME=" + dir, "LANG=C.UTF-8"},
		Event: func(line []byte) {
			var e event
			if err := json.Unmarshal(line, &e); err != nil {
				inside = fmt.Errorf("reading from the playground: %w", err)
				return
			}
			switch {
			case e.Progress != "":
				_, _ = fmt.Fprintln(o.Progress, e.Progress) // nobody listens: no reason to stop
			case e.Error != "":
				inside = errors.New(e.Error)
			case e.Report != nil:
				report = *e.Report
				finished = finish(o, report)
			}
		},
	})
	switch {
	case inside != nil:
		return report, inside
	case finished != nil:
		return report, finished
	case o.Keep && len(report.Checks) > 0 && errors.Is(err, context.Canceled):
		return report, nil
	case errors.Is(err, context.Canceled):
		return report, errors.New("interrupted; nothing of the playground is left")
	}
	return report, err
}

func finish(o Options, r Report) error {
	if o.Finished == nil {
		return nil
	}
	var pods []Pod
	if o.Keep {
		var err error
		if pods, err = Pods(); err != nil {
			return err
		}
	}
	return o.Finished(r, pods)
}

// programs are the executables that the inside needs, by the names that they have there.
func programs(o Options) (map[string]string, error) {
	bind := map[string]string{"playground": sandbox.Self, "tulle": o.Tulle, "tulle-agent": o.Agent, "envoy": o.Envoy}
	if own, err := os.Readlink(sandbox.Self); o.Tulle == "" || (err == nil && o.Tulle == own) {
		bind["tulle"] = sandbox.Self
	}
	for name, path := range bind {
		if path == "" {
			return nil, fmt.Errorf("where %s is was not said", name)
		}
		if path == sandbox.Self {
			continue
		}
		found, err := exec.LookPath(path)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if bind[name], err = filepath.Abs(found); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	// Without this it would be found out in the middle, and by a worse message.
	for _, tool := range []string{"iptables", "iptables-restore"} {
		if _, err := exec.LookPath(tool); err != nil && !sbinHas(tool) {
			return nil, fmt.Errorf("%s is missing: apt-get install iptables", tool)
		}
	}
	return bind, nil
}

// sbin is where iptables lies on machines that keep it out of the PATH of normal users.
var sbin = []string{"/usr/sbin", "/sbin", "/usr/local/sbin"}

func sbinHas(tool string) bool {
	return slices.ContainsFunc(sbin, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, tool))
		return err == nil
	})
}

func values(m map[string]string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for _, v := range m {
			if !yield(v) {
				return
			}
		}
	}
}
