// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package identity

import (
	"context"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Bundle is the ConfigMap that tells whoever may read it by which roots to trust the control plane's Services.
const Bundle = "appmesh-controller-ca"

// BundleKey is the key of the roots' PEM in it.
const BundleKey = "ca.crt"

// publish writes the roots into the ConfigMap where they are not in it.
func (i *Identity) publish(ctx context.Context) error {
	if i.opts.Publish == "" {
		return nil
	}
	configMaps := i.clients.CoreV1().ConfigMaps(i.opts.Namespace)
	have, err := configMaps.Get(ctx, i.opts.Publish, metav1.GetOptions{})
	missing := apierrors.IsNotFound(err)
	if err != nil && !missing {
		return fmt.Errorf("reading the ConfigMap of the roots: %w", err)
	}
	if missing {
		have = &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: i.opts.Publish, Namespace: i.opts.Namespace, Labels: map[string]string{appLabel: i.opts.App}}}
	}
	owners, adopted, err := i.owners(ctx, have.OwnerReferences)
	if err != nil {
		return err
	}
	if missing && i.owned && len(owners) == 0 {
		return nil // the control plane is being removed, and leaves nothing behind
	}
	bundle := string(i.CABundle())
	if !missing && have.Data[BundleKey] == bundle && !adopted {
		return nil
	}
	want := have.DeepCopy()
	want.Data = maps.Clone(have.Data)
	if want.Data == nil {
		want.Data = map[string]string{}
	}
	want.Data[BundleKey], want.OwnerReferences = bundle, owners
	if missing {
		_, err = configMaps.Create(ctx, want, metav1.CreateOptions{})
	} else {
		_, err = configMaps.Update(ctx, want, metav1.UpdateOptions{})
	}
	if err = raced(err); err != nil {
		return fmt.Errorf("writing the ConfigMap of the roots: %w", err)
	}
	return nil
}
