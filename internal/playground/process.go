// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package playground

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a program that runs in the background, with its output in a file.
type process struct {
	name string
	log  string
	cmd  *exec.Cmd
	// ended is closed when the process has ended, and err set before.
	ended chan struct{}
	err   error
}

// start runs the command in the background. Its output goes to a file of that name; its input is nothing.
func (w *world) start(name string, cmd *exec.Cmd) (*process, error) {
	p := &process{name: name, log: filepath.Join(w.dir, "logs", name+".log"), cmd: cmd, ended: make(chan struct{})}
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	defer func() { _ = log.Close() }() // the process has its own
	if cmd.Stdout == nil {
		cmd.Stdout = log
	}
	cmd.Stderr = log
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("starting %s: %w", name, err)
	}
	go func() {
		p.err = cmd.Wait()
		close(p.ended)
	}()
	return p, nil
}

// alive returns an error, with the process's last words, if it has ended.
func (p *process) alive() error {
	select {
	case <-p.ended:
		return fmt.Errorf("%s ended: %w%s", p.name, p.outcome(), p.lastWords())
	default:
		return nil
	}
}

func (p *process) outcome() error {
	if p.err == nil {
		return errors.New("exit status 0")
	}
	return p.err
}

// lastWords are the last lines of the log.
func (p *process) lastWords() string {
	data, err := fs.ReadFile(os.DirFS(filepath.Dir(p.log)), filepath.Base(p.log))
	if err != nil || len(data) == 0 {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return "\n  | " + strings.Join(lines[max(0, len(lines)-15):], "\n  | ")
}

// stop asks the process to end and waits; after the grace it is killed.
func (p *process) stop(ctx context.Context, w *world, grace time.Duration) error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending %s: %w", p.name, err)
	}
	select {
	case <-p.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-w.clock.After(grace):
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ending %s: %w", p.name, err)
	}
	<-p.ended
	return nil
}
