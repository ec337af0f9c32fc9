// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package admission

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/admission/review"
	"github.com/tulle-mesh/tulle/internal/clock"
)

func quiet(lookup Lookup) http.Handler {
	return Handler(Options{Lookup: lookup, Logger: slog.New(slog.DiscardHandler), Clock: &clock.Fake{}, Settle: -1})
}

func TestCallsThatAreNoReviewsAreTurnedAway(t *testing.T) {
	t.Parallel()
	const head = `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"`
	tests := map[string]struct {
		method, path, body string
		want               int
	}{
		"nothing":                   {http.MethodPost, MutatePath(kindMesh), "", http.StatusBadRequest},
		"no JSON":                   {http.MethodPost, ValidatePath(kindMesh), "{", http.StatusBadRequest},
		"a list":                    {http.MethodPost, MutatePath(kindMesh), "[]", http.StatusBadRequest},
		"another kind":              {http.MethodPost, MutatePath(kindMesh), `{"kind":"Pod","apiVersion":"v1"}`, http.StatusBadRequest},
		"a review of an old form":   {http.MethodPost, MutatePath(kindMesh), `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1beta1"}`, http.StatusBadRequest},
		"a review of nothing":       {http.MethodPost, MutatePath(kindMesh), head + "}", http.StatusBadRequest},
		"a request without a uid":   {http.MethodPost, MutatePath(kindMesh), head + `,"request":{"kind":{"kind":"Mesh"}}}`, http.StatusBadRequest},
		"a request of another kind": {http.MethodPost, MutatePath(kindMesh), head + `,"request":{"uid":"u","kind":{"kind":"VirtualNode","version":"v1beta2"}}}`, http.StatusBadRequest},
		"another version":           {http.MethodPost, MutatePath(kindMesh), head + `,"request":{"uid":"u","kind":{"kind":"Mesh","version":"v1beta1"}}}`, http.StatusBadRequest},
		"more than the API server may send": {
			http.MethodPost, ValidatePath(kindMesh), head + `,"x":"` + strings.Repeat("x", review.MaxBody) + `"}`, http.StatusRequestEntityTooLarge,
		},
		"a conversion of nothing":   {http.MethodPost, ConvertPath, `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1"}`, http.StatusBadRequest},
		"no conversion review":      {http.MethodPost, ConvertPath, head + "}", http.StatusBadRequest},
		"a large conversion":        {http.MethodPost, ConvertPath, strings.Repeat(" ", maxConversion+1), http.StatusRequestEntityTooLarge},
		"a GET":                     {http.MethodGet, MutatePath(kindMesh), "", http.StatusMethodNotAllowed},
		"a path that nobody serves": {http.MethodPost, "/mutate-v1-service", "", http.StatusNotFound},
	}
	handler := quiet(FromReader(&cluster{}))
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recorder := httptest.NewRecorder()
			handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, strings.NewReader(tt.body)))
			if recorder.Code != tt.want {
				t.Errorf("got %d %s, want %d", recorder.Code, recorder.Body, tt.want)
			}
		})
	}
}

func TestEveryKindHasItsTwoPaths(t *testing.T) {
	t.Parallel()
	handler := quiet(FromReader(&cluster{}))
	for _, kind := range []string{"mesh", "virtualnode", "virtualservice", "virtualrouter", "virtualgateway", "gatewayroute", "backendgroup"} {
		for _, verb := range []string{"mutate", "validate"} {
			path := "/" + verb + "-appmesh-k8s-aws-v1beta2-" + kind
			if status, _ := post(t, handler, path, nil); status != http.StatusBadRequest {
				t.Errorf("%s answers %d to nothing, want 400", path, status)
			}
		}
	}
}

func TestWhatDoesNotConcernTheObjectPasses(t *testing.T) {
	t.Parallel()
	handler := quiet(FromReader(&cluster{down: true}))
	for name, change := range map[string]func(*admissionv1.AdmissionRequest){
		"its status":   func(r *admissionv1.AdmissionRequest) { r.SubResource = "status" },
		"its deletion": func(r *admissionv1.AdmissionRequest) { r.Operation = admissionv1.Delete },
	} {
		in := &scene{Object: json.RawMessage(`{"apiVersion":"appmesh.k8s.aws/v1beta2","kind":"VirtualNode","metadata":{"name":"a","namespace":"shop"}}`)}
		request := in.request(t)
		change(request)
		for _, path := range []string{MutatePath(kindVirtualNode), ValidatePath(kindVirtualNode)} {
			if got := ask(t, handler, path, request); !got.Allowed || got.Patch != nil {
				t.Errorf("%s at %s: %+v, want it to pass as it is", name, path, got)
			}
		}
	}
}

func TestACacheThatFailsIsAnErrorAndNoVerdict(t *testing.T) {
	t.Parallel()
	in := &scene{Object: json.RawMessage(`{"apiVersion":"appmesh.k8s.aws/v1beta2","kind":"VirtualNode","metadata":{"name":"a","namespace":"shop"}}`)}
	got := ask(t, quiet(FromReader(&cluster{down: true})), MutatePath(kindVirtualNode), in.request(t))
	if got.Allowed || got.Code != http.StatusInternalServerError || !strings.Contains(got.Message, errDown.Error()) {
		t.Errorf("got %+v, want an internal error that says why", got)
	}
}

func TestASpecOfAnotherShapeIsLeftToTheSchemaThenRefused(t *testing.T) {
	t.Parallel()
	in := &scene{Object: json.RawMessage(`{"apiVersion":"appmesh.k8s.aws/v1beta2","kind":"VirtualNode","metadata":{"name":"a"},"spec":{"listeners":5}}`)}
	handler := quiet(FromReader(&cluster{}))
	if got := ask(t, handler, MutatePath(kindVirtualNode), in.request(t)); !got.Allowed || got.Patch != nil {
		t.Errorf("mutation: %+v, want no opinion", got)
	}
	if got := ask(t, handler, ValidatePath(kindVirtualNode), in.request(t)); got.Allowed || !strings.Contains(got.Message, "cannot be read as a VirtualNode") {
		t.Errorf("validation: %+v, want a refusal", got)
	}
}

// late is a cluster whose mesh is seen only at the third look.
type late struct {
	Lookup

	looks int
}

func (l *late) Meshes(ctx context.Context) ([]*v1beta2.Mesh, error) {
	if l.looks++; l.looks < 3 {
		return nil, nil
	}
	return l.Lookup.Meshes(ctx)
}

// hasty is a clock whose waits end at once, and take the time that they should.
type hasty struct{ *clock.Fake }

func (h hasty) After(d time.Duration) <-chan time.Time {
	h.Advance(d)
	return h.Fake.After(0)
}

func TestAMeshThatWasMadeAMomentAgoIsWaitedFor(t *testing.T) {
	t.Parallel()
	in := &scene{Object: json.RawMessage(`{"apiVersion":"appmesh.k8s.aws/v1beta2","kind":"VirtualNode","metadata":{"name":"a","namespace":"shop"}}`)}
	lookup := &late{Lookup: newCluster(t, []json.RawMessage{
		json.RawMessage(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}}`),
		json.RawMessage(`{"apiVersion":"appmesh.k8s.aws/v1beta2","kind":"Mesh","metadata":{"name":"m"},"spec":{"namespaceSelector":{}}}`),
	})}
	handler := Handler(Options{Lookup: lookup, Logger: slog.New(slog.DiscardHandler), Clock: hasty{&clock.Fake{}}})
	if got := ask(t, handler, MutatePath(kindVirtualNode), in.request(t)); !got.Allowed {
		t.Errorf("got %+v, want the mesh of the third look", got)
	}
	if lookup.looks != 3 {
		t.Errorf("looked %d times, want 3", lookup.looks)
	}
}

func TestAMeshThatNeverComesIsWaitedForOnlySoLong(t *testing.T) {
	t.Parallel()
	in := &scene{Object: json.RawMessage(`{"apiVersion":"appmesh.k8s.aws/v1beta2","kind":"VirtualNode","metadata":{"name":"a","namespace":"shop"}}`)}
	lookup := &late{Lookup: FromReader(&cluster{})}
	handler := Handler(Options{Lookup: lookup, Logger: slog.New(slog.DiscardHandler), Clock: hasty{&clock.Fake{}}})
	if got := ask(t, handler, MutatePath(kindVirtualNode), in.request(t)); got.Allowed {
		t.Errorf("got %+v, want a refusal", got)
	}
	if want := int(DefaultSettle/poll) + 1; lookup.looks != want {
		t.Errorf("looked %d times, want %d", lookup.looks, want)
	}
}

func FuzzNoCallMakesTheHandlerPanic(f *testing.F) {
	paths := []string{ConvertPath}
	for _, kind := range kinds() {
		paths = append(paths, MutatePath(kind), ValidatePath(kind))
	}
	for i, kind := range kinds() {
		request := `{"uid":"u","operation":"UPDATE","kind":{"kind":"` + kind + `","version":"v1beta2"},"object":{"metadata":{"name":"a"},"spec":{"awsName":"x","meshRef":{"name":"m"}}},"oldObject":{}}`
		body := `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":` + request + `}`
		f.Add(byte(1+2*i), body)
		f.Add(byte(2+2*i), body)
		f.Add(byte(2+2*i), strings.Replace(body, "UPDATE", "CREATE", 1))
	}
	f.Add(byte(0), `{"kind":"ConversionReview","apiVersion":"apiextensions.k8s.io/v1","request":{"uid":"u","desiredAPIVersion":"appmesh.k8s.aws/v1beta1","objects":[{"apiVersion":"appmesh.k8s.aws/v1beta2","kind":"VirtualNode","spec":{"listeners":[{}]}}]}}`)
	handler := quiet(FromReader(&cluster{}))
	f.Fuzz(func(t *testing.T, at byte, body string) {
		recorder := httptest.NewRecorder()
		path := paths[int(at)%len(paths)]
		handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body)))
		answer, err := io.ReadAll(recorder.Result().Body)
		if err != nil {
			t.Fatal(err)
		}
		switch recorder.Code {
		case http.StatusOK:
			if !json.Valid(answer) {
				t.Errorf("the answer %q is no JSON", answer)
			}
		case http.StatusBadRequest:
		default:
			t.Errorf("%d %s", recorder.Code, answer)
		}
	})
}

func FuzzNoObjectMakesAVerdictPanic(f *testing.F) {
	inputs, err := filepath.Glob("testdata/*.in.yaml")
	if err != nil {
		f.Fatal(err)
	}
	for i, input := range inputs {
		text, err := os.ReadFile(input)
		if err != nil {
			f.Fatal(err)
		}
		var in scene
		if err := yaml.Unmarshal(text, &in); err != nil {
			f.Fatal(err)
		}
		f.Add(byte(i), string(in.Object), string(in.Old))
	}
	handler := quiet(FromReader(&cluster{}))
	f.Fuzz(func(t *testing.T, at byte, object, before string) {
		kind := kinds()[int(at)%len(kinds())]
		request := &admissionv1.AdmissionRequest{
			UID: "request", Operation: admissionv1.Update, Namespace: "shop", Kind: metav1.GroupVersionKind{Kind: kind, Version: "v1beta2"},
			Object: runtime.RawExtension{Raw: []byte(object)}, OldObject: runtime.RawExtension{Raw: []byte(before)},
		}
		if !json.Valid(request.Object.Raw) || before != "" && !json.Valid(request.OldObject.Raw) {
			return
		}
		if before == "" {
			request.Operation, request.OldObject.Raw = admissionv1.Create, nil
		}
		ask(t, handler, MutatePath(kind), request)
		ask(t, handler, ValidatePath(kind), request)
		for _, version := range []string{old, stored} {
			converted, err := Convert(request.Object.Raw, version)
			if err == nil && !json.Valid(converted) {
				t.Errorf("%s becomes %s, which is no JSON", object, converted)
			}
		}
	})
}
