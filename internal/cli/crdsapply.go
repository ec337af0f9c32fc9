// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/deploy/crds"
)

// definitionManager owns what crds apply writes.
const definitionManager = "tulle-crds"

// servedWithin is how long a definition may take until the cluster serves it.
const servedWithin = time.Minute

// definitions brings a cluster's CustomResourceDefinitions up to date.
type definitions struct {
	definitionFlags

	env     Env
	cluster client.Client
}

func openDefinitions(env Env, f *definitionFlags) (*definitions, error) {
	config, err := clusterConfig(f.kubeconfig)
	if err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("the cluster does not answer: %w", err)
	}
	return &definitions{definitionFlags: *f, env: env, cluster: c}, nil
}

// say writes a line about what was done.
func (d *definitions) say(name, what string) error {
	_, err := fmt.Fprintf(d.env.Stdout, "customresourcedefinition %s %s\n", name, what)
	return err
}

// apply looks at all definitions before it touches the first, so that what cannot be upgraded leaves everything as it was.
func (d *definitions) apply(ctx context.Context) error {
	files, err := crds.Files()
	if err != nil {
		return err
	}
	var steps []definitionStep
	var errs []error
	for _, file := range files {
		step, err := d.step(ctx, file)
		steps, errs = append(steps, step), append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	for _, step := range steps {
		if err := d.take(ctx, step); err != nil {
			return err
		}
	}
	return nil
}

// definitionStep is what becomes of one definition.
type definitionStep struct {
	// want is the definition of this version of the program.
	want *apiextensionsv1.CustomResourceDefinition
	// text is the same as it is written: nothing in it but what its file says.
	text *unstructured.Unstructured
	// have is the cluster's; nil for none.
	have *apiextensionsv1.CustomResourceDefinition
	// gone are the versions in which the cluster may hold objects and that want does not know.
	gone []string
}

func (d *definitions) step(ctx context.Context, file crds.File) (definitionStep, error) {
	s := definitionStep{want: &apiextensionsv1.CustomResourceDefinition{}, text: &unstructured.Unstructured{}}
	if err := errors.Join(yaml.Unmarshal(file.Text, &s.text.Object), yaml.UnmarshalStrict(file.Text, s.want)); err != nil {
		return s, fmt.Errorf("the program's %s: %w", file.Name, err)
	}
	if s.want.Spec.Conversion != nil {
		if err := unstructured.SetNestedField(s.text.Object, d.system, "spec", "conversion", "webhook", "clientConfig", "service", "namespace"); err != nil {
			return s, fmt.Errorf("the program's %s: %w", file.Name, err)
		}
	}
	have := &apiextensionsv1.CustomResourceDefinition{}
	err := d.cluster.Get(ctx, client.ObjectKeyFromObject(s.want), have)
	if apierrors.IsNotFound(err) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("reading the CustomResourceDefinition %s: %w", s.want.Name, err)
	}
	s.have = have
	known := versionsOf(s.want)
	for _, stored := range have.Status.StoredVersions {
		if !slices.Contains(known, stored) {
			s.gone = append(s.gone, stored)
		}
	}
	if len(s.gone) > 0 && !d.migrate {
		return s, fmt.Errorf("the CustomResourceDefinition %s says that objects may be stored as %s, which this version does not serve (it serves %s), so it cannot be upgraded: "+
			"run 'tulle crds apply --migrate' (chart value crds.migrate=true), which writes those objects again in a version that stays",
			s.want.Name, strings.Join(s.gone, ", "), strings.Join(known, ", "))
	}
	if have.Spec.PreserveUnknownFields {
		// A definition that was made through apiextensions.k8s.io/v1beta1: no conversion as long as this is on.
		if err := unstructured.SetNestedField(s.text.Object, false, "spec", "preserveUnknownFields"); err != nil {
			return s, err
		}
	}
	return s, nil
}

func versionsOf(definition *apiextensionsv1.CustomResourceDefinition) []string {
	names := make([]string, 0, len(definition.Spec.Versions))
	for _, version := range definition.Spec.Versions {
		names = append(names, version.Name)
	}
	return names
}

// take makes one definition what it shall be, and returns once it is served.
func (d *definitions) take(ctx context.Context, s definitionStep) error {
	name := s.want.Name
	if len(s.gone) > 0 {
		if err := d.leave(ctx, s); err != nil {
			return err
		}
	}
	if err := d.cluster.Apply(ctx, client.ApplyConfigurationFromUnstructured(s.text), client.ForceOwnership, client.FieldOwner(definitionManager)); err != nil {
		return fmt.Errorf("applying the CustomResourceDefinition %s: %w", name, err)
	}
	now, err := d.served(ctx, name)
	if err != nil {
		return err
	}
	what := "unchanged"
	switch {
	case s.have == nil:
		what = "created"
	case s.have.Generation != now.Generation:
		what = "upgraded"
	}
	if err := d.say(name, what); err != nil {
		return err
	}
	if d.migrate {
		return d.rewriteOld(ctx, now)
	}
	return nil
}

// served waits until the cluster serves a definition.
func (d *definitions) served(ctx context.Context, name string) (*apiextensionsv1.CustomResourceDefinition, error) {
	ctx, cancel := context.WithTimeout(ctx, servedWithin)
	defer cancel()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	for {
		if err := d.cluster.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
			return nil, fmt.Errorf("reading the CustomResourceDefinition %s: %w", name, err)
		}
		why := "the API server has not looked at it yet"
		for _, c := range definition.Status.Conditions {
			switch {
			case c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue:
				return definition, nil
			case c.Status == apiextensionsv1.ConditionFalse:
				why = c.Message
			}
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("the CustomResourceDefinition %s was applied and is not served after %s: %s", name, servedWithin, why)
		case <-d.env.Clock.After(100 * time.Millisecond):
		}
	}
}
