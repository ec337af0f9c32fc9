// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/tulle-mesh/tulle/api/v1beta1"
	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/inject"
)

// webhook is the handler with a cluster in memory behind it.
type webhook struct {
	handler       http.Handler
	cluster       client.Client
	serverVersion string
}

func scheme(tb testing.TB) *runtime.Scheme {
	tb.Helper()
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{corev1.AddToScheme, v1beta1.AddToScheme, v1beta2.AddToScheme} {
		if err := add(s); err != nil {
			tb.Fatal(err)
		}
	}
	return s
}

func newWebhook(tb testing.TB, settings inject.Settings, raw []json.RawMessage) *webhook {
	tb.Helper()
	w := &webhook{serverVersion: "v1.37.2"}
	s := scheme(tb)
	builder := fake.NewClientBuilder().WithScheme(s).WithObjects(objects(tb, raw)...)
	w.cluster = builder.Build()
	if err := settings.Validate(); err != nil {
		tb.Fatal(err)
	}
	w.handler = inject.Handler(inject.Options{
		Cached: w.cluster, Live: w.cluster, Settings: settings,
		CABundle:      func() []byte { return []byte("-----BEGIN CERTIFICATE-----\n") },
		ServerVersion: func(context.Context) (string, error) { return w.serverVersion, nil },
		Logger:        slog.New(slog.DiscardHandler), Clock: clock.Real{}, Settle: time.Nanosecond,
	})
	return w
}

// objects reads objects as the API server keeps them.
func objects(tb testing.TB, list []json.RawMessage) []client.Object {
	tb.Helper()
	decoder := serializer.NewCodecFactory(scheme(tb)).UniversalDeserializer()
	out := make([]client.Object, 0, len(list))
	for _, raw := range list {
		object, _, err := decoder.Decode(raw, nil, nil)
		if err != nil {
			tb.Fatalf("%s: %v", raw, err)
		}
		stored, ok := stored(object).(client.Object)
		if !ok {
			tb.Fatalf("%T is no object", object)
		}
		out = append(out, stored)
	}
	return out
}

// stored is an object as the API server keeps it.
func stored(object runtime.Object) runtime.Object {
	switch o := object.(type) {
	case *v1beta1.Mesh:
		return o.ToV1beta2()
	case *v1beta1.VirtualNode:
		return o.ToV1beta2()
	}
	return object
}

// answer is what becomes of a pod.
type answer struct {
	pod      []byte
	patched  bool
	refused  string
	warnings []string
}

// create sends a pod to the webhook as the API server does, and does to it what the answer says.
func (w *webhook) create(tb testing.TB, pod []byte) answer {
	tb.Helper()
	var meta struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(pod, &meta); err != nil {
		tb.Fatal(err)
	}
	review := admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
		Request: &admissionv1.AdmissionRequest{
			UID: "u", Kind: metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespace: meta.Metadata.Namespace, Operation: admissionv1.Create,
			Object: runtime.RawExtension{Raw: pod},
		},
	}
	response := w.send(tb, review)
	out := answer{pod: pod, warnings: response.Warnings}
	if !response.Allowed {
		out.refused = response.Result.Message
		return out
	}
	if len(response.Patch) == 0 {
		return out
	}
	patch, err := jsonpatch.DecodePatch(response.Patch)
	if err != nil {
		tb.Fatal(err)
	}
	if out.pod, err = patch.Apply(pod); err != nil {
		tb.Fatalf("the patch %s does not fit: %v", response.Patch, err)
	}
	out.patched = true
	return out
}

func (w *webhook) send(tb testing.TB, review admissionv1.AdmissionReview) *admissionv1.AdmissionResponse {
	tb.Helper()
	body, err := json.Marshal(review)
	if err != nil {
		tb.Fatal(err)
	}
	recorder := httptest.NewRecorder()
	w.handler.ServeHTTP(recorder, httptest.NewRequestWithContext(tb.Context(), http.MethodPost, inject.Path, bytes.NewReader(body)))
	if recorder.Code != http.StatusOK {
		tb.Fatalf("status %d: %s", recorder.Code, recorder.Body)
	}
	var got admissionv1.AdmissionReview
	if err := json.Unmarshal(recorder.Body.Bytes(), &got); err != nil {
		tb.Fatal(err)
	}
	if got.Response == nil || got.Response.UID != review.Request.UID {
		tb.Fatalf("no response to the request: %s", recorder.Body)
	}
	return got.Response
}
