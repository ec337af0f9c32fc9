// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// Write brings the directory up to date, one file an object, and returns how many files it wrote or removed. A file
// changes in one step: it is made in staging, which must be on the same file system, and moved.
func (c *Cluster) Write(dir, staging string) (int, error) {
	files, err := c.files()
	if err != nil {
		return 0, err
	}
	changed := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if bytes.Equal(files[name], c.written[name]) {
			continue
		}
		changed++
		temporary := filepath.Join(staging, name)
		if err := os.WriteFile(temporary, files[name], 0o600); err != nil {
			return changed, fmt.Errorf("writing a manifest: %w", err)
		}
		if err := os.Rename(temporary, filepath.Join(dir, name)); err != nil {
			return changed, fmt.Errorf("writing a manifest: %w", err)
		}
	}
	for name := range c.written {
		if _, ok := files[name]; ok {
			continue
		}
		changed++
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return changed, fmt.Errorf("removing a manifest: %w", err)
		}
	}
	c.written = files
	return changed, nil
}

// files are the manifests of everything: what was applied, and what the cluster made of it.
func (c *Cluster) files() (map[string][]byte, error) {
	files := map[string][]byte{}
	add := func(key Key, o any) error {
		data, err := yaml.Marshal(o)
		if err != nil {
			return fmt.Errorf("encoding %s: %w", key, err)
		}
		words := slices.DeleteFunc([]string{key.Kind, key.Group, key.Namespace, key.Name}, func(w string) bool { return w == "" })
		files[strings.ToLower(strings.Join(words, "_"))+".yaml"] = data
		return nil
	}
	var errs []error
	for key, o := range c.objects {
		errs = append(errs, add(key, o.Object))
	}
	for _, s := range c.services {
		s.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Service"}
		errs = append(errs, add(Key{Kind: "Service", Namespace: s.Namespace, Name: s.Name}, s))
		for _, slice := range c.endpointSlices(s) {
			errs = append(errs, add(Key{Kind: "EndpointSlice", Namespace: slice.Namespace, Name: slice.Name}, slice))
		}
	}
	for _, pod := range c.pods {
		errs = append(errs, add(Key{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name}, pod))
	}
	return files, errors.Join(errs...)
}
