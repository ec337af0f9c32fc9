// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/api/v1beta2"
)

// BenchmarkACreationAmongAThousandNodes is both webhooks for one new node.
func BenchmarkACreationAmongAThousandNodes(b *testing.B) {
	c := &cluster{namespaces: []*corev1.Namespace{{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}}}
	c.objects = append(c.objects, &v1beta2.Mesh{
		ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1beta2.MeshSpec{NamespaceSelector: &metav1.LabelSelector{}},
	})
	for i := range 1000 {
		c.objects = append(c.objects, &v1beta2.VirtualNode{
			ObjectMeta: metav1.ObjectMeta{Name: "n" + strconv.Itoa(i), Namespace: "shop"},
			Spec:       v1beta2.VirtualNodeSpec{MeshRef: &v1beta2.MeshReference{Name: "m"}},
		})
	}
	handler := quiet(FromReader(c))
	bodies := map[string][]byte{}
	for _, path := range []string{MutatePath(kindVirtualNode), ValidatePath(kindVirtualNode)} {
		review := &admissionv1.AdmissionReview{
			TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"},
			Request:  &admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Create, Namespace: "shop"},
		}
		review.Request.Kind = metav1.GroupVersionKind{Kind: kindVirtualNode, Version: v1beta2.Version}
		review.Request.Object.Raw = []byte(`{"metadata":{"name":"a","namespace":"shop"},"spec":{"meshRef":{"name":"m"},"podSelector":{},"listeners":[{"portMapping":{"port":1,"protocol":"tcp"}}]}}`)
		body, err := json.Marshal(review)
		if err != nil {
			b.Fatal(err)
		}
		bodies[path] = body
	}
	for b.Loop() {
		for path, body := range bodies {
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequestWithContext(b.Context(), http.MethodPost, path, bytes.NewReader(body)))
			if recorder.Code != http.StatusOK {
				b.Fatal(recorder.Code)
			}
		}
	}
}

// BenchmarkConversionOfAService is one object of a list in the version that is not stored.
func BenchmarkConversionOfAService(b *testing.B) {
	text, err := yaml.YAMLToJSON([]byte(oldService))
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Convert(text, stored); err != nil {
			b.Fatal(err)
		}
	}
}
