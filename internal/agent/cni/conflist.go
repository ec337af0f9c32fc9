// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cni

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/containernetworking/cni/pkg/version"
)

// list is a network's configuration with its plugins in order. What this package does not know of it is kept as it is written.
type list struct {
	fields  map[string]json.RawMessage
	plugins []json.RawMessage
}

// oldest is the first version of the specification that hands a plugin the result of the one before.
const oldest = "0.3.1"

func parseList(content []byte) (*list, error) {
	l := &list{}
	if err := json.Unmarshal(content, &l.fields); err != nil {
		return nil, fmt.Errorf("it is no JSON object: %w", err)
	}
	if err := json.Unmarshal(l.fields["plugins"], &l.plugins); err != nil || len(l.plugins) == 0 {
		return nil, errors.New("it has no list of plugins")
	}
	var spoken string
	if err := json.Unmarshal(l.fields["cniVersion"], &spoken); err != nil {
		return nil, errors.New("it names no cniVersion")
	}
	if ok, err := version.GreaterThanOrEqualTo(spoken, oldest); err != nil || !ok {
		return nil, fmt.Errorf("its cniVersion is %s, and chained plugins need %s at least", spoken, oldest)
	}
	return l, nil
}

// entry is this plugin's in a list.
func entry() json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"type": %q, "capabilities": {%q: true}}`, Program, annotationsCapability))
}

func ours(plugin json.RawMessage) bool {
	var named struct{ Type string }
	return json.Unmarshal(plugin, &named) == nil && named.Type == Program
}

// with returns the list's text with the plugin as its last, and whether that is a change.
func (l *list) with() ([]byte, bool, error) {
	n := len(l.plugins)
	if slices.IndexFunc(l.plugins, ours) == n-1 && same(l.plugins[n-1], entry()) {
		return nil, false, nil
	}
	text, err := l.text(append(slices.DeleteFunc(slices.Clone(l.plugins), ours), entry()))
	return text, true, err
}

// without returns the list's text without the plugin, and whether that is a change.
func (l *list) without() ([]byte, bool, error) {
	kept := slices.DeleteFunc(slices.Clone(l.plugins), ours)
	if len(kept) == len(l.plugins) {
		return nil, false, nil
	}
	text, err := l.text(kept)
	return text, true, err
}

func same(a, b json.RawMessage) bool {
	var left, right bytes.Buffer
	return json.Compact(&left, a) == nil && json.Compact(&right, b) == nil && bytes.Equal(left.Bytes(), right.Bytes())
}

func (l *list) text(plugins []json.RawMessage) ([]byte, error) {
	fields := maps.Clone(l.fields)
	raw, err := json.Marshal(plugins)
	if err != nil {
		return nil, err
	}
	fields["plugins"] = raw
	text, err := json.MarshalIndent(fields, "", "  ")
	return append(text, '\n'), err
}

// configurations are the names in a folder that a container runtime reads, in its order: it takes the first.
func configurations(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if ext := filepath.Ext(e.Name()); !e.IsDir() && (ext == ".conflist" || ext == ".conf" || ext == ".json") {
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	return names, nil
}

// readList reads a configuration that may be changed.
func readList(path string) (*list, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is a link, and is not replaced: make it a file, or name the folder that it leads to", path)
	}
	if !strings.HasSuffix(path, ".conflist") {
		return nil, fmt.Errorf("%s is the node's network, and is not a list that a plugin could be added to: write it as a .conflist with \"plugins\": [...]", path)
	}
	content, err := os.ReadFile(path) //nolint:gosec // G304: a name in the folder that the caller gave
	if err != nil {
		return nil, err
	}
	l, err := parseList(content)
	if err != nil {
		return nil, fmt.Errorf("%s is not changed: %w", path, err)
	}
	return l, nil
}

// replace writes a file that is never seen half written, with the mode of the one that it replaces.
func replace(path string, content []byte, mode os.FileMode) (err error) {
	if info, statErr := os.Stat(path); statErr == nil {
		mode = info.Mode().Perm()
	}
	// No runtime reads a name without one of its endings.
	file, err := os.CreateTemp(filepath.Dir(path), ".tulle-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(file.Name())
		}
	}()
	_, err = file.Write(content)
	if err == nil {
		err = file.Chmod(mode)
	}
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	return err
}
