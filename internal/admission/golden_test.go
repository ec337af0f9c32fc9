// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"bytes"
	"encoding/json"
	"flag"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/clock"
)

var update = flag.Bool("update", false, "write the golden outputs anew, and remove those without an input")

// scene is a request, and the cluster in which it is made.
type scene struct {
	DefaultMesh string `json:"defaultMesh"`
	// Cluster holds what the cache knows.
	Cluster []json.RawMessage `json:"cluster"`
	// Object is what the user writes, in either version; Old is what was there before an update.
	Object json.RawMessage `json:"object"`
	Old    json.RawMessage `json:"old"`
}

// answer is what the API server hears.
type answer struct {
	Allowed  bool            `json:"allowed"`
	Message  string          `json:"message,omitempty"`
	Code     int32           `json:"code,omitempty"`
	Patch    json.RawMessage `json:"patch,omitempty"`
	Warnings []string        `json:"warnings,omitempty"`
}

type answers struct {
	Mutate   *answer `json:"mutate"`
	Validate *answer `json:"validate,omitempty"`
}

// TestRequestsAreAnsweredAsTheGoldenFilesSay sends testdata/<case>.in.yaml through both webhooks, as the API server would,
// and compares the answers with testdata/<case>.out.yaml.
func TestRequestsAreAnsweredAsTheGoldenFilesSay(t *testing.T) {
	t.Parallel()
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil || len(inputs) == 0 {
		t.Fatalf("no inputs: %v", err)
	}
	if *update {
		outputs, _ := filepath.Glob("testdata/*.out.yaml")
		for _, output := range outputs {
			if _, err := os.Stat(strings.TrimSuffix(output, ".out.yaml") + ".in.yaml"); err != nil {
				if err := os.Remove(output); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	for _, input := range inputs {
		t.Run(strings.TrimSuffix(filepath.Base(input), ".in.yaml"), func(t *testing.T) {
			t.Parallel()
			var in scene
			raw, err := os.ReadFile(input)
			if err != nil {
				t.Fatal(err)
			}
			if err := yaml.UnmarshalStrict(raw, &in); err != nil {
				t.Fatal(err)
			}
			got, err := yaml.Marshal(in.play(t))
			if err != nil {
				t.Fatal(err)
			}
			golden := strings.TrimSuffix(input, ".in.yaml") + ".out.yaml"
			if *update {
				if err := os.WriteFile(golden, got, 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("%s differs (-want +got), write it anew with -update:\n%s", golden, diff)
			}
		})
	}
}

// handler is admission in the scene's cluster, which never waits.
func (s *scene) handler(t *testing.T) http.Handler {
	t.Helper()
	return Handler(Options{
		Lookup: newCluster(t, s.Cluster), Logger: slog.New(slog.DiscardHandler), Clock: clock.NewFake(time.Unix(0, 0)),
		DefaultMesh: s.DefaultMesh, Settle: -1,
	})
}

// play makes the request as the API server does: converted to v1beta2, mutated, patched, validated.
func (s *scene) play(t *testing.T) answers {
	t.Helper()
	handler := s.handler(t)
	request := s.request(t)
	var out answers
	out.Mutate = ask(t, handler, MutatePath(request.Kind.Kind), request)
	if !out.Mutate.Allowed {
		return out
	}
	if out.Mutate.Patch != nil {
		patch, err := jsonpatch.DecodePatch(out.Mutate.Patch)
		if err != nil {
			t.Fatal(err)
		}
		patched, err := patch.Apply(request.Object.Raw)
		if err != nil {
			t.Fatalf("patch %s does not apply: %v", out.Mutate.Patch, err)
		}
		request.Object.Raw = patched
		if again := ask(t, handler, MutatePath(request.Kind.Kind), request); again.Patch != nil {
			t.Errorf("a second pass patches again: %s", again.Patch)
		}
	}
	out.Validate = ask(t, handler, ValidatePath(request.Kind.Kind), request)
	return out
}

func (s *scene) request(t *testing.T) *admissionv1.AdmissionRequest {
	t.Helper()
	var object metav1.PartialObjectMetadata
	if err := json.Unmarshal(s.Object, &object); err != nil {
		t.Fatal(err)
	}
	written := object.GroupVersionKind()
	request := &admissionv1.AdmissionRequest{
		UID:       "request",
		Operation: admissionv1.Create, Namespace: object.Namespace, Name: object.Name,
		Kind:        metav1.GroupVersionKind{Group: written.Group, Version: v1beta2.Version, Kind: written.Kind},
		RequestKind: &metav1.GroupVersionKind{Group: written.Group, Version: written.Version, Kind: written.Kind},
		Object:      runtime.RawExtension{Raw: converted(t, s.Object)},
	}
	if s.Old != nil {
		request.Operation, request.OldObject.Raw = admissionv1.Update, converted(t, s.Old)
	}
	return request
}

func converted(t *testing.T, raw []byte) []byte {
	t.Helper()
	out, err := Convert(raw, v1beta2.GroupVersion().String())
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// ask makes one webhook call.
func ask(t *testing.T, handler http.Handler, path string, request *admissionv1.AdmissionRequest) *answer {
	t.Helper()
	review := &admissionv1.AdmissionReview{
		TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: request,
	}
	body, err := json.Marshal(review)
	if err != nil {
		t.Fatal(err)
	}
	status, got := post(t, handler, path, body)
	if status != http.StatusOK {
		t.Fatalf("%s answers %d: %s", path, status, got)
	}
	review = &admissionv1.AdmissionReview{}
	if err := json.Unmarshal(got, review); err != nil {
		t.Fatal(err)
	}
	response := review.Response
	if response == nil || response.UID != types.UID("request") || review.Kind != "AdmissionReview" || review.Request != nil {
		t.Fatalf("%s answers %s, which is no answer to the review", path, got)
	}
	out := &answer{Allowed: response.Allowed, Patch: response.Patch, Warnings: response.Warnings}
	if response.Result != nil {
		out.Message, out.Code = response.Result.Message, response.Result.Code
	}
	return out
}

func post(t *testing.T, handler http.Handler, path string, body []byte) (int, []byte) {
	t.Helper()
	recorder := httptest.NewRecorder()
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(body))
	request.Header.Set("Content-Type", "application/json")
	handler.ServeHTTP(recorder, request)
	return recorder.Code, recorder.Body.Bytes()
}
