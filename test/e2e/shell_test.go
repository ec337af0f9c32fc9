// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A shell is the terminal of someone who follows a document: lines run in bash, one after the other, in a folder of the repository, and what they export stays.
type shell struct {
	t   *testing.T
	dir string
	// exports is a file with what was exported so far. kubectl keeps beside it what it learns of the cluster's kinds, which come and go from test to test.
	exports string
}

// terminal opens a shell in a folder of the repository.
func terminal(t *testing.T, dir string) *shell {
	t.Helper()
	return &shell{t: t, dir: filepath.Join(here.root, dir), exports: filepath.Join(t.TempDir(), "exports")}
}

// prelude makes bash one that goes on from where the last one was: the documents write k for kubectl.
const prelude = `set -e -o pipefail; k() { kubectl "$@"; }; [ ! -e "$E2E_EXPORTS" ] || source "$E2E_EXPORTS"; trap 'export -p >"$E2E_EXPORTS"' EXIT
`

// patience is how long one command may take.
const patience = 4 * time.Minute

// slow is how long a command takes that the log has a line about.
const slow = 3 * time.Second

// try runs a line, with an input where one is given, and returns what it printed on standard output, without the space around it.
func (s *shell) try(line string, input ...string) (string, error) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "timeout", fmt.Sprint(int(patience.Seconds())), "bash", "-c", prelude+line)
	cmd.Dir, cmd.Env = s.dir, append(cmd.Environ(), "E2E_EXPORTS="+s.exports, "KUBECACHEDIR="+filepath.Join(filepath.Dir(s.exports), "kubectl"))
	cmd.Stdin = strings.NewReader(strings.Join(input, "\n"))
	cmd.WaitDelay = 5 * time.Second // for what is left running in the background
	var out, errs strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errs
	begin := time.Now() //nolint:forbidigo // for those who read the log
	err := cmd.Run()
	if took := time.Since(begin); took > slow {
		first, _, _ := strings.Cut(strings.TrimSpace(line), "\n")
		s.t.Logf("%.1f s: %s", took.Seconds(), first)
	}
	text := strings.TrimSpace(out.String())
	if err != nil {
		return text, fmt.Errorf("%s\n%w\n%s%s", line, err, out.String(), errs.String())
	}
	return text, nil
}

// run runs a line that must work.
func (s *shell) run(line string, input ...string) output {
	s.t.Helper()
	text, err := s.try(line, input...)
	if err != nil {
		s.t.Fatal(err)
	}
	return output{s.t, line, text}
}

// refused runs a line that must not work, and returns all that it says.
func (s *shell) refused(line string, input ...string) output {
	s.t.Helper()
	text, err := s.try(line, input...)
	if err == nil {
		s.t.Fatalf("%s\nwas not refused, and said:\n%s", line, text)
	}
	return output{s.t, line, err.Error()}
}

// soon repeats a line until it works and prints all of the texts, for a minute at most.
func (s *shell) soon(line string, texts ...string) {
	s.t.Helper()
	eventually(s.t, time.Minute, func() error {
		text, err := s.try(line)
		if err != nil {
			return err
		}
		return lacks(line, text, texts)
	})
}

// An output is what a command printed.
type output struct {
	t             *testing.T
	command, text string
}

// says fails the test for each of the texts that is not in the output. Runs of spaces are one, since columns are as wide as their longest word.
func (o output) says(texts ...string) output {
	o.t.Helper()
	if err := lacks(o.command, o.text, texts); err != nil {
		o.t.Error(err)
	}
	return o
}

// saysNot fails the test for each of the texts that is in the output.
func (o output) saysNot(texts ...string) {
	o.t.Helper()
	for _, text := range texts {
		if strings.Contains(o.text, text) {
			o.t.Errorf("%s\nsays %q, which it should not:\n%s", o.command, text, o.text)
		}
	}
}

// is fails the test unless the output is the text, to the letter.
func (o output) is(text string) {
	o.t.Helper()
	if o.text != text {
		o.t.Errorf("%s\nshould print\n%s\nand prints\n%s", o.command, text, o.text)
	}
}

// lines are the output's lines.
func (o output) lines() []string {
	if o.text == "" {
		return nil
	}
	return strings.Split(o.text, "\n")
}

func lacks(command, text string, wanted []string) error {
	spaces := regexp.MustCompile(`[ \t]+`)
	plain := spaces.ReplaceAllString(text, " ")
	for _, want := range wanted {
		if !strings.Contains(plain, spaces.ReplaceAllString(want, " ")) {
			return fmt.Errorf("%s\ndoes not say %q:\n%s", command, want, text)
		}
	}
	return nil
}

// empty is an error that shows the text, if there is one.
func empty(what, text string) error {
	if text == "" {
		return nil
	}
	return fmt.Errorf("%s: there should be nothing:\n%s", what, text)
}

// eventually repeats a check until it holds.
func eventually(t *testing.T, within time.Duration, holds func() error) {
	t.Helper()
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-t.Context().Done():
			t.Fatal(errors.Join(t.Context().Err(), err))
		case <-deadline.C:
			t.Fatalf("not within %s: %v", within, err)
		case <-time.After(250 * time.Millisecond):
		}
	}
}
