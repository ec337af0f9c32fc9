// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package playground

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tulle-mesh/tulle/internal/playground/cluster"
	"github.com/tulle-mesh/tulle/internal/playground/scenario"
	"github.com/tulle-mesh/tulle/internal/playground/traffic"
)

// run does the steps in their order.
func (w *world) run(ctx context.Context) error {
	began := w.clock.Now()
	for i, s := range w.scenario.Steps {
		w.progress(fmt.Sprintf("[%d/%d] %s", i+1, len(w.scenario.Steps), s.Name))
		if err := w.step(ctx, s); err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, s.Name, err)
		}
		if err := w.alive(); err != nil {
			return fmt.Errorf("step %d (%s): %w", i+1, s.Name, err)
		}
	}
	w.report.Seconds = w.clock.Now().Sub(began).Seconds()
	w.report.OK = true
	for _, c := range w.report.Checks {
		w.report.OK = w.report.OK && c.OK
	}
	return nil
}

func (w *world) step(ctx context.Context, s scenario.Step) error {
	switch {
	case s.Apply != nil:
		return w.apply(ctx, s.Apply)
	case s.ControlPlane != nil:
		return w.startControlPlane(ctx)
	case s.Restart != nil:
		return w.restart(ctx, s.Restart)
	case s.Expect != nil:
		for _, e := range s.Expect {
			if err := w.expect(ctx, e); err != nil {
				return err
			}
		}
		return nil
	case s.Load != nil:
		return w.startLoad(ctx, s.Load)
	case s.Split != nil:
		return w.measure(ctx, s.Split)
	default:
		return w.stopLoad(s.StopLoad)
	}
}

// alive returns an error if a program has ended that should run.
func (w *world) alive() error {
	if w.plane != nil {
		if err := w.plane.process.alive(); err != nil {
			return err
		}
	}
	for _, p := range w.pods {
		for _, process := range p.processes() {
			if err := process.alive(); err != nil {
				return err
			}
		}
	}
	return nil
}

// check adds to the report and says so.
func (w *world) check(c Check) {
	w.report.Checks = append(w.report.Checks, c)
	mark := "ok"
	if !c.OK {
		mark = "FAILED"
	}
	w.progress(fmt.Sprintf("  %s %s: %s: %s", mark, c.Check, oneLine(c.What), oneLine(c.Found)))
}

func (w *world) apply(ctx context.Context, a *scenario.Apply) error {
	before, err := w.versions(ctx)
	if err != nil {
		return err
	}
	for _, name := range a.Files {
		keys, err := w.cluster.Apply(name, w.scenario.Manifests[name], w.scenario.Namespace, a.Kinds)
		if err != nil {
			return err
		}
		for _, k := range keys {
			w.progress("  applied " + k.String())
		}
	}
	if a.Acknowledged != nil {
		if err := w.acknowledged(ctx, before, a); err != nil {
			return err
		}
	}
	if err := w.publish(ctx); err != nil {
		return err
	}
	for _, workload := range w.cluster.Workloads() {
		if err := w.reconcile(ctx, workload); err != nil {
			return err
		}
	}
	return w.settled(ctx)
}

// acknowledged writes the manifests and measures the time until every proxy has taken over what they mean for it.
func (w *world) acknowledged(ctx context.Context, before delivery, a *scenario.Apply) error {
	began := w.clock.Now()
	if err := w.writeManifests(); err != nil {
		return err
	}
	end, err := w.settle(ctx, before, true)
	if err != nil {
		return err
	}
	took := end.Sub(began)
	limit := time.Duration(a.Acknowledged.WithinMillis) * time.Millisecond
	w.check(Check{
		Check: a.Acknowledged.Check, OK: took <= limit, Millis: float64(took.Microseconds()) / 1000,
		What:  fmt.Sprintf("%s: from file write to all %d Envoys acknowledging within %s", strings.Join(a.Files, ", "), w.proxies(), limit),
		Found: took.Round(100 * time.Microsecond).String(),
	})
	return nil
}

// settled waits until every proxy has acknowledged everything, if there is a control plane.
func (w *world) settled(ctx context.Context) error {
	if w.plane == nil {
		return nil
	}
	_, err := w.settle(ctx, delivery{}, false)
	return err
}

func (w *world) restart(ctx context.Context, r *scenario.Restart) error {
	for _, name := range r.Workloads {
		if err := w.cluster.Restart(w.scenario.Namespace, name); err != nil {
			return err
		}
		key := cluster.Key{Group: "apps", Kind: "Deployment", Namespace: w.scenario.Namespace, Name: name}
		if err := w.reconcile(ctx, key); err != nil {
			return err
		}
	}
	return w.settled(ctx)
}

// expect sends a request from a pod and compares.
func (w *world) expect(ctx context.Context, e scenario.Expectation) error {
	p, err := w.firstPod(e.From)
	if err != nil {
		return err
	}
	cmd := w.inPod(ctx, p, roleRequest, e.URL)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("request from %s to %s: %w", e.From, e.URL, err)
	}
	var got traffic.Result
	if err := json.Unmarshal(out, &got); err != nil {
		return fmt.Errorf("request from %s to %s: %w", e.From, e.URL, err)
	}
	c := Check{Check: e.Check, What: e.From + " -> " + e.URL + ": " + wanted(e), Found: got.String(), OK: holds(e, got)}
	if !c.OK && got.Error != "" {
		c.Found += " (" + got.Error + ")"
	}
	w.check(c)
	return nil
}

func holds(e scenario.Expectation, got traffic.Result) bool {
	return got.Connection == e.Connection &&
		(e.Status == 0 || got.Status == e.Status) &&
		(e.Body == "" || got.Body == e.Body) &&
		(e.Server == "" || got.Server == e.Server)
}

func wanted(e scenario.Expectation) string {
	if e.Connection != "" {
		return "connection " + e.Connection
	}
	return traffic.Result{Status: e.Status, Body: e.Body, Server: e.Server}.String()
}
