// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/tulle-mesh/tulle/internal/agent/userns"
	"github.com/tulle-mesh/tulle/internal/clock"
)

// process is Envoy, over all its starts.
type process struct {
	config  Config
	streams Streams
	// bootstrap makes the configuration file for the next start.
	bootstrap func(context.Context) (string, error)

	mu sync.Mutex
	// running is Envoy's process; nil between two starts.
	running *os.Process
	// ending is set once Envoy is meant to end.
	ending bool
	// starts counts how often Envoy was started.
	starts int
	// ended is closed when Envoy has ended for good.
	ended chan struct{}
}

func newProcess(config Config, streams Streams, makeBootstrap func(context.Context) (string, error)) (*process, error) {
	if err := raiseFileLimit(); err != nil {
		return nil, err
	}
	if config.User >= 0 {
		id := uint32(config.User) //nolint:gosec // G115: it was read as a user id
		if err := errors.Join(userns.CheckUser(id), userns.CheckGroup(id)); err != nil {
			return nil, fmt.Errorf("cannot run Envoy as user %d: %w", config.User, err)
		}
		if err := reachable(config.RunDir, id); err != nil {
			return nil, fmt.Errorf("run directory: %w", err)
		}
	}
	return &process{config: config, streams: streams, bootstrap: makeBootstrap, ended: make(chan struct{})}, nil
}

// raiseFileLimit lets this process and Envoy open as many files, and so connections, as the system allows them.
func raiseFileLimit() error {
	var limit syscall.Rlimit
	err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit)
	if err == nil {
		limit.Cur = limit.Max
		err = syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
	}
	if err != nil {
		return fmt.Errorf("raise the limit of open files: %w", err)
	}
	return nil
}

// isOurs says whether Envoy has this process id.
func (p *process) isOurs(pid int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running != nil && p.running.Pid == pid
}

// supervise starts Envoy, and again when it ends by itself. It returns nil when Envoy ended as it was told to.
func (p *process) supervise(ctx context.Context, log *slog.Logger, c clock.Clock) error {
	// The kernel kills Envoy when the thread that started it ends, so this goroutine keeps its thread to itself.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.ended)
	for restarts := 0; ; restarts++ {
		command, finish, err := p.start(ctx)
		if err != nil {
			return err
		}
		log.InfoContext(ctx, "Envoy started", "pid", command.Process.Pid, "path", p.config.Envoy, "restarts", restarts)
		exit := p.wait(command, finish)
		switch {
		case p.isEnding() || ctx.Err() != nil:
			log.InfoContext(ctx, "Envoy ended", "exit", exit)
			return ctx.Err()
		case restarts >= p.config.Restarts:
			return fmt.Errorf("envoy ended by itself (%s) and was started again %d times, which is the limit", exit, restarts)
		}
		pause := min(100*time.Millisecond<<restarts, 2*time.Second)
		log.ErrorContext(ctx, "Envoy ended by itself and is started again", "exit", exit, "restarts_left", p.config.Restarts-restarts-1, "in", pause)
		select {
		case <-c.After(pause):
		case <-ctx.Done():
			return ctx.Err()
		}
		if p.isEnding() {
			return nil
		}
	}
}

// start starts Envoy. The returned function waits until all that Envoy wrote has been copied.
func (p *process) start(ctx context.Context) (*exec.Cmd, func(), error) {
	path, err := p.bootstrap(ctx)
	if err != nil {
		return nil, nil, err
	}
	command := exec.CommandContext(ctx, p.config.Envoy, p.arguments(path)...) //nolint:gosec // G204: the operator names Envoy and its arguments
	command.Stdout, command.Stderr = p.streams.Out, p.streams.Err
	// A process group of its own keeps a terminal's Ctrl-C from Envoy, which would end without a drain.
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	finish := func() {}
	if p.config.User >= 0 {
		if finish, err = p.asUser(command); err != nil {
			finish()
			return nil, nil, err
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := command.Start(); err != nil {
		finish()
		return nil, nil, fmt.Errorf("start Envoy: %w", err)
	}
	p.running = command.Process
	p.starts++
	return command, finish, nil
}

func (p *process) arguments(bootstrap string) []string {
	args := []string{"-c", bootstrap, "--disable-hot-restart", "--drain-strategy", "gradual", "--log-level", p.config.LogLevel}
	if p.config.Concurrency > 0 {
		args = append(args, "--concurrency", strconv.Itoa(p.config.Concurrency))
	}
	if p.config.DrainTime > 0 {
		args = append(args, "--drain-time-s", strconv.FormatInt(int64(p.config.DrainTime/time.Second), 10))
	}
	return append(args, p.config.EnvoyArgs...)
}

// wait waits for Envoy's end and tells it in words.
func (p *process) wait(command *exec.Cmd, finish func()) string {
	err := command.Wait()
	p.mu.Lock()
	p.running = nil
	p.mu.Unlock()
	finish()
	if err != nil && command.ProcessState == nil {
		return err.Error()
	}
	return command.ProcessState.String()
}

// startCount is how often Envoy was started.
func (p *process) startCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.starts
}

func (p *process) isEnding() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ending
}

// end ends Envoy, by force if it does not do so itself within 3 s.
func (p *process) end(ctx context.Context, log *slog.Logger, c clock.Clock) {
	p.signal(syscall.SIGTERM)
	select {
	case <-p.ended:
	case <-ctx.Done():
	case <-c.After(3 * time.Second):
		log.WarnContext(ctx, "Envoy does not end: killing it")
		p.signal(syscall.SIGKILL)
	}
}

func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ending = true
	if p.running != nil {
		_ = p.running.Signal(s) // it has ended meanwhile, which is what is wanted
	}
}

// asUser prepares a command to run as Envoy's own user. Its output goes through pipes that this user may open, since access logs are opened by the name
// /dev/stdout. The returned function, which may be called after an error too, waits until the pipes are empty and gives everything back.
func (p *process) asUser(command *exec.Cmd) (finish func(), err error) {
	id := uint32(p.config.User) //nolint:gosec // G115: it was read as a user id
	command.SysProcAttr.Credential = &syscall.Credential{Uid: id, Gid: id}
	var copies sync.WaitGroup
	var files []*os.File
	finish = func() {
		for _, file := range files {
			_ = file.Close() // the agent never wrote to it
		}
		copies.Wait()
	}
	if reachable(p.config.Envoy, id) != nil {
		// The binary lies where its user may not go, in somebody's home for one. A file that is open is executed all the same.
		binary, err := os.Open(p.config.Envoy)
		if err != nil {
			return finish, fmt.Errorf("open Envoy's binary: %w", err)
		}
		files = append(files, binary)
		command.ExtraFiles = []*os.File{binary} // file 3 of the new process
		// The link gives the process a name that people look for.
		command.Path = filepath.Join(p.config.RunDir, "envoy")
		if err := os.Remove(command.Path); err != nil && !errors.Is(err, os.ErrNotExist) {
			return finish, fmt.Errorf("remove the old link to Envoy: %w", err)
		}
		if err := os.Symlink("/proc/self/fd/3", command.Path); err != nil {
			return finish, fmt.Errorf("link to Envoy: %w", err)
		}
	}
	for _, stream := range []struct {
		into *os.File
		out  *io.Writer
	}{{p.streams.Out, &command.Stdout}, {p.streams.Err, &command.Stderr}} {
		read, write, err := os.Pipe()
		if err != nil {
			return finish, fmt.Errorf("make a pipe for Envoy's output: %w", err)
		}
		files = append(files, write)
		*stream.out = write
		copies.Go(func() {
			_, _ = io.Copy(stream.into, read) // what cannot be written has nowhere else to go
			_ = read.Close()
		})
		if err := write.Chown(p.config.User, p.config.User); err != nil {
			return finish, fmt.Errorf("give Envoy's user its output: %w", err)
		}
	}
	return finish, nil
}
