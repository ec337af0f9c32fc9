// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cni

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/fsnotify/fsnotify"

	"github.com/tulle-mesh/tulle/internal/clock"
)

// Installer puts the plugin on a node, and keeps it there.
type Installer struct {
	// ConfDir and BinDir are the node's folders of networks and of plugins.
	ConfDir, BinDir string
	// Program is the file that is copied there.
	Program string
	// Wanted says at the end of Run whether the plugin stays, as it does while one installer follows another; nil for no.
	Wanted func(context.Context) bool
	Clock  clock.Clock
	Logger *slog.Logger
}

// look is how often the folders are looked at though nothing tells of a change.
const look = 10 * time.Second

// errNoNetwork says that the node has no network yet, as on one that has just joined.
var errNoNetwork = errors.New("the node has no network yet")

// Run installs the plugin, waits for a network where there is none yet, and mends what others change until ctx ends. Then it takes the plugin out, unless it
// is still wanted. A network that it cannot change safely is an error at the start, and is logged later on.
func (i Installer) Run(ctx context.Context) error {
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watch the node's networks: %w", err)
	}
	defer func() { _ = watcher.Close() }()
	if err := i.folders(); err != nil {
		return err
	}
	if err := watcher.Add(i.ConfDir); err != nil {
		return fmt.Errorf("watch %s: %w", i.ConfDir, err)
	}
	said := ""
	for first := true; ; first = false {
		changed, err := i.install(first)
		if err != nil && first && !errors.Is(err, errNoNetwork) {
			return err
		}
		said = i.say(changed || first, err, said)
		select {
		case <-ctx.Done():
			return i.end(context.WithoutCancel(ctx))
		case <-watcher.Events:
		case err := <-watcher.Errors:
			i.Logger.Warn("watching the node's networks", "error", err)
		case <-i.Clock.After(look):
		}
	}
}

// say logs what came of a look at the node, a fault once while it lasts; said is the one before.
func (i Installer) say(changed bool, err error, said string) string {
	if err == nil {
		if changed || said != "" {
			i.Logger.Info("the plugin is in place", "configurations", i.ConfDir, "plugins", i.BinDir)
		}
		return ""
	}
	if err.Error() != said {
		i.Logger.Error("the plugin is not in place: pods that start now and count on it are not captured", "error", err)
	}
	return err.Error()
}

// end is what happens when the installer is told to stop.
func (i Installer) end(ctx context.Context) error {
	if i.Wanted != nil && i.Wanted(ctx) {
		i.Logger.Info("the plugin stays, since another installer follows this one")
		return nil
	}
	if err := i.Uninstall(); err != nil {
		return err
	}
	i.Logger.Info("the plugin is gone from this node")
	return nil
}

// folders says which of the node's folders is missing.
func (i Installer) folders() error {
	for _, dir := range []struct{ flag, path string }{{"conf-dir", i.ConfDir}, {"bin-dir", i.BinDir}} {
		info, err := os.Stat(dir.path)
		if gone(err) || err == nil && !info.IsDir() {
			return fmt.Errorf("--%s %s: there is no such folder: mount the node's, and name it as your container runtime does", dir.flag, dir.path)
		}
		if err != nil {
			return fmt.Errorf("--%s: %w", dir.flag, err)
		}
	}
	return nil
}

// Install brings the node once to what is wanted, and says whether that was a change: the program first, so that no network ever names one that is not there;
// then the first network, which is the one that runtimes use; then the others, which may have been first before.
func (i Installer) Install() (changed bool, err error) { return i.install(true) }

// install looks closely at the program or, since that is large, at its size alone.
func (i Installer) install(closely bool) (changed bool, err error) {
	if err := i.folders(); err != nil {
		return false, err
	}
	if changed, err = i.copyProgram(closely); err != nil {
		return false, fmt.Errorf("copy the plugin: %w", err)
	}
	names, err := configurations(i.ConfDir)
	if err != nil {
		return false, err
	}
	if len(names) == 0 {
		return changed, fmt.Errorf("%w: %s holds no configuration; its network's own installer has to come first", errNoNetwork, i.ConfDir)
	}
	path := filepath.Join(i.ConfDir, names[0])
	l, err := readList(path)
	if err != nil {
		return changed, err
	}
	text, differs, err := l.with()
	if err == nil && differs {
		err = replace(path, text, 0o600)
	}
	if err != nil {
		return changed, fmt.Errorf("change %s: %w", path, err)
	}
	removed, err := i.takeOut(names[1:])
	return changed || differs || removed, err
}

func (i Installer) copyProgram(closely bool) (bool, error) {
	path := filepath.Join(i.BinDir, Program)
	own, err := os.Stat(i.Program)
	if err != nil {
		return false, err
	}
	if present, err := os.Stat(path); err == nil && !closely && present.Size() == own.Size() {
		return false, nil
	}
	content, err := os.ReadFile(i.Program)
	if err != nil {
		return false, err
	}
	if present, err := os.ReadFile(path); err == nil && bytes.Equal(present, content) { //nolint:gosec // G304: the operator's folder
		return false, nil
	}
	return true, replace(path, content, 0o755)
}

// takeOut removes the plugin from networks, and leaves those alone that it cannot read.
func (i Installer) takeOut(names []string) (changed bool, err error) {
	var faults []error
	for _, name := range names {
		path := filepath.Join(i.ConfDir, name)
		l, err := readList(path)
		if err != nil {
			continue // it is not one that this package has written
		}
		text, differs, err := l.without()
		if err == nil && differs {
			err = replace(path, text, 0o600)
			changed = true
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("change %s: %w", path, err))
		}
	}
	return changed, errors.Join(faults...)
}

// Uninstall takes the plugin out of every network, and then removes its program. Where it is not there it does nothing.
func (i Installer) Uninstall() error {
	if err := i.folders(); err != nil {
		return err
	}
	names, err := configurations(i.ConfDir)
	if err != nil {
		return err
	}
	if _, err := i.takeOut(names); err != nil {
		return err
	}
	if err := os.Remove(filepath.Join(i.BinDir, Program)); err != nil && !gone(err) {
		return err
	}
	return nil
}

// Check says whether the plugin is in place: its program there, and the node's network naming it last.
func (i Installer) Check() error {
	if err := i.folders(); err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(i.BinDir, Program)); err != nil {
		return fmt.Errorf("the plugin's program: %w", err)
	}
	names, err := configurations(i.ConfDir)
	if err != nil {
		return err
	}
	if len(names) == 0 {
		return errNoNetwork
	}
	path := filepath.Join(i.ConfDir, names[0])
	l, err := readList(path)
	if err != nil {
		return err
	}
	if _, differs, err := l.with(); err != nil || differs {
		return errors.Join(err, fmt.Errorf("%s does not name %s as its last plugin", path, Program))
	}
	return nil
}
