// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package installation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/deploy/crds"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

const kindDefinition = "CustomResourceDefinition"

// applyDefinitions is the command that brings definitions up to date.
const applyDefinitions = "tulle crds apply"

// checkDefinitions compares the cluster's definitions with those of this program.
func (k *checkup) checkDefinitions(ctx context.Context) error {
	if k.unread["customresourcedefinitions"] {
		return nil
	}
	files, err := crds.Files()
	if err != nil {
		return err
	}
	for _, file := range files {
		want := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(file.Text, want); err != nil {
			return fmt.Errorf("the program's %s: %w", file.Name, err)
		}
		i := slices.IndexFunc(k.definitions, func(d apiextensionsv1.CustomResourceDefinition) bool { return d.Name == want.Name })
		if i < 0 {
			k.wrong(ReasonNotInstalled, mesh.Source{Kind: kindDefinition, Name: want.Name},
				fmt.Sprintf("the cluster does not know the kind %s: objects of it cannot be applied, and the control plane waits for it", want.Spec.Names.Kind), applyDefinitions)
			continue
		}
		if err := k.checkDefinition(ctx, &k.definitions[i], want); err != nil {
			return err
		}
	}
	return nil
}

func (k *checkup) checkDefinition(ctx context.Context, have, want *apiextensionsv1.CustomResourceDefinition) error {
	at := mesh.Source{Kind: kindDefinition, Name: have.Name}
	if k.longAgo(have.DeletionTimestamp) {
		k.wrong(ReasonStuck, at, "this definition is being deleted and waits for its objects to go: nothing of the kind can be made meanwhile",
			"kubectl get "+have.Spec.Names.Plural+" -A; see below which of them hang, and why")
		return nil
	}
	for _, c := range have.Status.Conditions {
		if c.Status == apiextensionsv1.ConditionFalse && (c.Type == apiextensionsv1.NamesAccepted || c.Type == apiextensionsv1.Established && k.longAgo(&c.LastTransitionTime)) {
			k.wrong(ReasonNotInstalled, at, "the API server does not serve this kind: "+c.Message, "kubectl describe crd "+have.Name)
			return nil
		}
	}
	k.checkStored(at, have, want)
	if missing := notServed(have, want); len(missing) > 0 {
		k.wrong(ReasonOutdated, at, fmt.Sprintf("this definition does not serve %s: it is the original App Mesh controller's, or older than this program, and fields that it does not know are dropped without a word", strings.Join(missing, " and ")), applyDefinitions)
		return nil
	}
	if !sameSchemas(have, want) {
		k.odd(ReasonOutdated, at, "this definition is not the one that belongs to this program: fields that it does not know are dropped without a word", applyDefinitions)
	}
	if len(want.Spec.Versions) < 2 {
		return nil
	}
	conversion := have.Spec.Conversion
	if conversion == nil || conversion.Strategy != apiextensionsv1.WebhookConverter || conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		k.wrong(ReasonOutdated, at, "this definition converts nothing between v1beta1 and v1beta2: an object that is written in one version is nonsense in the other", applyDefinitions)
		return nil
	}
	config := conversion.Webhook.ClientConfig
	return k.checkClient(ctx, callee{
		at: at, service: reference(config.Service), bundle: config.CABundle, what: "the conversion of this kind", harm: "its objects can be read and written only in the version in which they are stored",
	})
}

// checkStored looks for versions in which objects were stored once, and which have to be served for as long as that is noted.
func (k *checkup) checkStored(at mesh.Source, have, want *apiextensionsv1.CustomResourceDefinition) {
	for _, version := range have.Status.StoredVersions {
		known := slices.ContainsFunc(want.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version })
		switch {
		case !known:
			k.wrong(ReasonLeftOver, at, fmt.Sprintf("objects of this kind were once stored as %s, which the control plane does not know: while the API server notes that, the definition cannot be brought up to date", version),
				applyDefinitions+" --migrate")
		case version != v1beta2.Version:
			k.odd(ReasonLeftOver, at, fmt.Sprintf("some objects of this kind may still be stored as %s, from the time of the original controller: that works, and each is stored anew when it is written", version),
				applyDefinitions+" --migrate")
		}
	}
}

// notServed are the versions that a definition should serve and does not.
func notServed(have, want *apiextensionsv1.CustomResourceDefinition) []string {
	var missing []string
	for i := range want.Spec.Versions {
		if v := versionOf(have, want.Spec.Versions[i].Name); v == nil || !v.Served {
			missing = append(missing, want.Spec.Versions[i].Name)
		}
	}
	return missing
}

func versionOf(d *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	i := slices.IndexFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == name })
	if i < 0 {
		return nil
	}
	return &d.Spec.Versions[i]
}

func sameSchemas(have, want *apiextensionsv1.CustomResourceDefinition) bool {
	return !slices.ContainsFunc(want.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
		return !equality.Semantic.DeepEqual(versionOf(have, v.Name).Schema, v.Schema)
	})
}
