// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package apiserver

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	clientscheme "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// Repository is a path of the repository that the test belongs to.
func Repository(elements ...string) string {
	_, here, _, _ := runtime.Caller(0)
	return filepath.Join(append([]string{filepath.Dir(here), "..", ".."}, elements...)...)
}

// installDefinitions puts the CustomResourceDefinitions of deploy/crds in place and waits until they are served. Their conversion is left out: without the
// controller nobody answers it, and what is stored is v1beta2.
func (s *Server) installDefinitions(ctx context.Context) error {
	scheme := clientscheme.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return err
	}
	c, err := client.New(s.Config, client.Options{Scheme: scheme})
	if err != nil {
		return err
	}
	files, err := filepath.Glob(Repository("deploy", "crds", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("no CustomResourceDefinitions in deploy/crds: %w", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file) //nolint:gosec // the repository's own
		if err != nil {
			return err
		}
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.UnmarshalStrict(text, definition); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		definition.Spec.Conversion = nil
		if err := c.Create(ctx, definition); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		if err := established(ctx, c, definition); err != nil {
			return err
		}
	}
	return nil
}

func established(ctx context.Context, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) error {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if err := c.Get(ctx, client.ObjectKeyFromObject(definition), definition); err != nil {
			return err
		}
		for _, condition := range definition.Status.Conditions {
			if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s is not served: %w", definition.Name, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}
