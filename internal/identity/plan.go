// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package identity

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// operation is one of a JSON patch.
type operation struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value any    `json:"value"`
}

// delegated is the annotation by which cert-manager is asked to fill in the roots; then they are not ours.
const delegated = "cert-manager.io/inject-ca-from"

// planWebhooks gives the roots to the webhooks that call our Service.
func planWebhooks(_ context.Context, t *target, object *unstructured.Unstructured) ([]operation, error) {
	o := t.identity.opts
	if label := object.GetLabels()[appLabel]; label != o.App {
		return nil, fmt.Errorf("its label %s is %q, not %q, so it is taken for somebody else's; correct the label, or remove the object", appLabel, label, o.App)
	}
	if object.GetAnnotations()[delegated] != "" {
		return nil, nil
	}
	webhooks, _, err := unstructured.NestedSlice(object.Object, "webhooks")
	if err != nil {
		return nil, err
	}
	want := base64.StdEncoding.EncodeToString(t.identity.CABundle())
	var operations []operation
	for n := range webhooks {
		webhook, _ := webhooks[n].(map[string]any)
		service, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "name")
		namespace, _, _ := unstructured.NestedString(webhook, "clientConfig", "service", "namespace")
		have, _, _ := unstructured.NestedString(webhook, "clientConfig", "caBundle")
		if service != o.Service || namespace != o.Namespace || have == want {
			continue
		}
		operations = append(operations, operation{Op: "add", Path: fmt.Sprintf("/webhooks/%d/clientConfig/caBundle", n), Value: want})
	}
	return operations, nil
}

// planDefinition leads a definition's conversion to our Service, with the roots. A definition that converts in another way, or through another Service, is
// left alone.
func planDefinition(ctx context.Context, t *target, object *unstructured.Unstructured) ([]operation, error) {
	o := t.identity.opts
	at := []string{"spec", "conversion", "webhook", "clientConfig"}
	field := func(path ...string) string {
		text, _, _ := unstructured.NestedString(object.Object, append(slices.Clip(at), path...)...)
		return text
	}
	strategy, _, _ := unstructured.NestedString(object.Object, "spec", "conversion", "strategy")
	if strategy != "Webhook" || field("service", "name") != o.Service || object.GetAnnotations()[delegated] != "" {
		t.converts.Store(false)
		return nil, nil
	}
	t.converts.Store(true)
	const path = "/spec/conversion/webhook/clientConfig"
	var operations []operation
	have, namespace := field("caBundle"), field("service", "namespace")
	if namespace != o.Namespace {
		if have != "" {
			if err := t.abandoned(ctx, namespace); err != nil {
				return nil, err
			}
		}
		operations = append(operations, operation{Op: "replace", Path: path + "/service/namespace", Value: o.Namespace})
	}
	if want := base64.StdEncoding.EncodeToString(t.identity.CABundle()); have != want {
		operations = append(operations, operation{Op: "add", Path: path + "/caBundle", Value: want})
	}
	return operations, nil
}

// abandoned gives an error if another control plane answers in a namespace: two that fought for a definition would help nobody.
func (t *target) abandoned(ctx context.Context, namespace string) error {
	o := t.identity.opts
	_, err := t.identity.clients.CoreV1().Services(namespace).Get(ctx, o.Service, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("looking for Service %s in namespace %s: %w", o.Service, namespace, err)
	}
	return fmt.Errorf("the control plane in namespace %s converts it, and this one is in %s; a cluster has one: uninstall one of the two", namespace, o.Namespace)
}
