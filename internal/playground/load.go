// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package playground

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tulle-mesh/tulle/internal/playground/scenario"
	"github.com/tulle-mesh/tulle/internal/playground/traffic"
)

// load is the running load generator.
type load struct {
	process  *process
	commands io.WriteCloser
	answers  *bufio.Reader
}

func (w *world) startLoad(ctx context.Context, l *scenario.Load) error {
	p, err := w.firstPod(l.From)
	if err != nil {
		return err
	}
	plan := traffic.Plan{Targets: map[string]string{}, Rate: l.Rate}
	for _, t := range l.Targets {
		plan.Targets[t.Name] = t.URL
	}
	arg, err := json.Marshal(plan)
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	cmd := w.inPod(ctx, p, roleLoad, string(arg))
	running := &load{}
	if running.commands, err = cmd.StdinPipe(); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	// A pipe of our own: that of the command would be closed as soon as it ends, with the last answer unread.
	read, write, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("load: %w", err)
	}
	cmd.Stdout = write
	running.answers = bufio.NewReader(read)
	running.process, err = w.start("load", cmd)
	_ = write.Close()
	if err != nil {
		return err
	}
	w.load = running
	w.progress(fmt.Sprintf("  %d requests a second to each of %d targets", l.Rate, len(l.Targets)))
	return nil
}

func (l *load) ask(command string) (traffic.Report, error) {
	if _, err := io.WriteString(l.commands, command+"\n"); err != nil {
		return traffic.Report{}, fmt.Errorf("load: %w", err)
	}
	return l.answer()
}

func (l *load) answer() (traffic.Report, error) {
	var r traffic.Report
	line, err := l.answers.ReadBytes('\n')
	if err != nil {
		return r, fmt.Errorf("load: no answer: %w", err)
	}
	if err := json.Unmarshal(line, &r); err != nil {
		return r, fmt.Errorf("load: %w", err)
	}
	return r, nil
}

// measure waits until the load has enough responses to requests that began from now on, and judges how they divide.
func (w *world) measure(ctx context.Context, splits []scenario.Split) error {
	mark, err := w.load.ask(traffic.CommandEpoch)
	if err != nil {
		return err
	}
	var report traffic.Report
	for enough := false; !enough; {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-w.load.process.ended:
			return w.load.process.alive()
		case <-w.clock.After(100 * time.Millisecond):
		}
		if report, err = w.load.ask(traffic.CommandReport); err != nil {
			return err
		}
		enough = true
		for _, s := range splits {
			tally := report.Since(mark.Epoch, s.Target)
			enough = enough && tally.Requests >= s.Requests
		}
	}
	for _, s := range splits {
		tally := report.Since(mark.Epoch, s.Target)
		shares := map[string]int{}
		var weights []string
		for _, share := range s.Shares {
			shares[share.Body] = share.Weight
			weights = append(weights, strconv.Itoa(share.Weight))
		}
		sigmas := s.Sigmas
		if sigmas == 0 {
			sigmas = 4
		}
		ok, found := tally.Split(shares, sigmas)
		w.check(Check{
			Check: s.Check, Requests: tally.Requests, Failed: tally.Failed(), Bodies: tally.Bodies,
			What:  fmt.Sprintf("%s %s, %d requests or more, within %g sigma", s.Target, strings.Join(weights, "/"), s.Requests, sigmas),
			Found: found, OK: ok,
		})
	}
	return nil
}

// stopLoad ends the load and judges all of it.
func (w *world) stopLoad(s *scenario.StopLoad) error {
	if err := w.load.commands.Close(); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	report, err := w.load.answer()
	if err != nil {
		return err
	}
	<-w.load.process.ended
	if w.load.process.err != nil {
		return w.load.process.alive()
	}
	w.load = nil
	all := report.All()
	found := fmt.Sprintf("%d failed of %d, mean %s, slowest %s", all.Failed(), all.Requests,
		all.Mean().Round(10*time.Microsecond), all.Slowest.Round(100*time.Microsecond))
	if all.Failed() > 0 {
		found += ": " + all.WorstFailures(3)
	}
	w.check(Check{
		Check: s.Check, Requests: all.Requests, Failed: all.Failed(),
		What:  fmt.Sprintf("at most %d failed requests under load while things change", s.MaxFailures),
		Found: found, OK: all.Requests > 0 && all.Failed() <= s.MaxFailures,
	})
	return nil
}
