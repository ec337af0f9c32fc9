// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// listed is how many objects are read at a time.
const listed = 250

// heeded is how long API servers may take to store by a definition that was changed. Nothing tells when they do.
const heeded = 5 * time.Second

// leave takes a definition of old off the versions that are gone, while it still serves them: its objects are written again in one that stays.
func (d *definitions) leave(ctx context.Context, s definitionStep) error {
	known := versionsOf(s.want)
	stays := ""
	for _, version := range slices.Backward(s.have.Spec.Versions) {
		if slices.Contains(known, version.Name) && version.Served {
			stays = version.Name
			if version.Storage {
				break
			}
		}
	}
	if stays == "" {
		return fmt.Errorf("the CustomResourceDefinition %[1]s serves none of %[2]s, so its objects cannot be written again in one of them: "+
			"save them with 'kubectl get %[1]s -A -o yaml', delete the definition with 'kubectl delete crd %[1]s', run this command again, and apply the objects as %[2]s",
			s.want.Name, strings.Join(known, " or "))
	}
	if err := d.storeAs(ctx, s.have, stays); err != nil {
		return err
	}
	count, err := d.rewrite(ctx, s.have, stays)
	if err != nil {
		return err
	}
	if err := d.cutStored(ctx, s.have.Name, stays); err != nil {
		return err
	}
	return d.say(s.have.Name, fmt.Sprintf("left %s behind: %s stored as %s", strings.Join(s.gone, ", "), plural(count, "object"), stays))
}

// storeAs makes version the one that the definition stores.
func (d *definitions) storeAs(ctx context.Context, have *apiextensionsv1.CustomResourceDefinition, version string) error {
	if storedVersion(have) == version {
		return nil
	}
	changed := have.DeepCopy()
	for i := range changed.Spec.Versions {
		v := &changed.Spec.Versions[i]
		v.Storage = v.Name == version
	}
	patch := client.MergeFromWithOptions(have, client.MergeFromWithOptimisticLock{})
	if err := d.cluster.Patch(ctx, changed, patch, client.FieldOwner(definitionManager)); err != nil {
		return fmt.Errorf("making %s the stored version of the CustomResourceDefinition %s: %w", version, have.Name, err)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-d.env.Clock.After(heeded):
		return nil
	}
}

// storedVersion is the version in which a definition's objects are stored.
func storedVersion(definition *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// rewrite writes every object of a definition as it is, which stores it in the definition's stored version.
func (d *definitions) rewrite(ctx context.Context, definition *apiextensionsv1.CustomResourceDefinition, version string) (int, error) {
	names := definition.Spec.Names
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(schema.GroupVersionKind{Group: definition.Spec.Group, Version: version, Kind: names.Kind + "List"})
	count := 0
	for {
		if err := d.cluster.List(ctx, list, client.Limit(listed), client.Continue(list.GetContinue())); err != nil {
			return count, fmt.Errorf("listing %s as %s: %w", names.Plural, version, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			err := d.cluster.Update(ctx, object, client.FieldOwner(definitionManager))
			// One that somebody else wrote or deleted meanwhile was rewritten by that.
			if err != nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
				return count, fmt.Errorf("writing %s %s again: %w%s", names.Kind, client.ObjectKeyFromObject(object), err, leftoverHint(err))
			}
			count++
		}
		if list.GetContinue() == "" {
			return count, nil
		}
	}
}

// leftoverHint says what to do about webhooks that nobody answers any more.
func leftoverHint(err error) string {
	if !strings.Contains(err.Error(), "failed calling webhook") {
		return ""
	}
	return " (a webhook whose controller is gone: find its configuration with 'kubectl get mutatingwebhookconfigurations,validatingwebhookconfigurations' and delete it)"
}

// cutStored makes version the only one that the definition says objects are stored in.
func (d *definitions) cutStored(ctx context.Context, name, version string) error {
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"storedVersions": []string{version}}})
	if err != nil {
		return err
	}
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := d.cluster.Status().Patch(ctx, definition, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(definitionManager)); err != nil {
		return fmt.Errorf("noting on the CustomResourceDefinition %s that objects are stored as %s alone: %w", name, version, err)
	}
	return nil
}

// rewriteOld stores objects of served but old versions in the one that is stored now. That needs conversion, hence a running controller; without one the
// objects stay as they are, which harms nothing.
func (d *definitions) rewriteOld(ctx context.Context, now *apiextensionsv1.CustomResourceDefinition) error {
	stored := storedVersion(now)
	if slices.Equal(now.Status.StoredVersions, []string{stored}) {
		return nil
	}
	count, err := d.rewrite(ctx, now, stored)
	if err != nil && strings.Contains(err.Error(), "conversion webhook") {
		return d.say(now.Name, fmt.Sprintf("keeps objects stored as %s: no controller converts them yet, so run this again once one does",
			strings.Join(now.Status.StoredVersions, ", ")))
	}
	if err != nil {
		return err
	}
	if err := d.cutStored(ctx, now.Name, stored); err != nil {
		return err
	}
	return d.say(now.Name, fmt.Sprintf("has %s stored as %s", plural(count, "object"), stored))
}
