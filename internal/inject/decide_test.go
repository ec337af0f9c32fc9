// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/admission/review"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/inject"
)

const apiPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p","namespace":"shop","labels":{"app":"api"}},"spec":{"containers":[{"name":"app","image":"i"}]}}`

// between are the two readers of a webhook: a cache that is behind, and the API server.
func between(t *testing.T, cached, live *webhook, fake *clock.Fake, change func(*inject.Options)) *webhook {
	t.Helper()
	o := inject.Options{
		Cached: cached.cluster, Live: live.cluster, Settings: testSettings(), Logger: slog.New(slog.DiscardHandler), Clock: fake,
		ServerVersion: func(context.Context) (string, error) { return "v1.37.2", nil },
	}
	if change != nil {
		change(&o)
	}
	return &webhook{handler: inject.Handler(o)}
}

func TestAPodBehindItsNodeWaitsForTheCacheAndThenAsksTheAPIServer(t *testing.T) {
	t.Parallel()
	empty := newWebhook(t, testSettings(), shop()[:2])
	full := newWebhook(t, testSettings(), shop())

	t.Run("the cache catches up", func(t *testing.T) {
		t.Parallel()
		late := newWebhook(t, testSettings(), shop()[:2])
		asked := make(chan struct{}, 100)
		fake := clock.NewFake(time.Unix(0, 0))
		w := between(t, late, empty, fake, func(o *inject.Options) { o.Cached = &told{Reader: late.cluster, of: asked} })
		done := make(chan answer, 1)
		go func() { done <- w.create(t, []byte(apiPod)) }()
		<-asked // and was told of no node
		for _, o := range objects(t, []json.RawMessage{node()}) {
			if err := late.cluster.Create(t.Context(), o); err != nil {
				t.Fatal(err)
			}
		}
		if got := advance(fake, 50*time.Millisecond, done); got.refused != "" || !got.patched {
			t.Errorf("refused %q, patched %v", got.refused, got.patched)
		}
	})
	for name, c := range map[string]struct {
		live    *webhook
		refused string
	}{
		"the API server knows more":   {live: full},
		"there really is no node":     {live: empty, refused: "no VirtualNode or VirtualGateway of namespace shop"},
		"the namespace label is late": {live: full},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cached := empty
			if strings.Contains(name, "label") {
				cached = newWebhook(t, testSettings(), nil)
			}
			fake := clock.NewFake(time.Unix(0, 0))
			w := between(t, cached, c.live, fake, nil)
			done := make(chan answer, 1)
			go func() { done <- w.create(t, []byte(apiPod)) }()
			got := advance(fake, inject.DefaultSettle, done)
			if (c.refused == "") != got.patched || !strings.Contains(got.refused, c.refused) {
				t.Errorf("patched %v, refused %q; want %q", got.patched, got.refused, c.refused)
			}
		})
	}
}

// told says when it has listed VirtualNodes.
type told struct {
	client.Reader

	of chan struct{}
}

func (r *told) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	err := r.Reader.List(ctx, list, options...)
	if _, ok := list.(*v1beta2.VirtualNodeList); ok {
		r.of <- struct{}{}
	}
	return err
}

// advance moves the clock until there is an answer, each time that somebody waits for it.
func advance(fake *clock.Fake, by time.Duration, done <-chan answer) answer {
	for {
		select {
		case got := <-done:
			return got
		default:
			if fake.Waiting() > 0 {
				fake.Advance(by)
			}
			goruntime.Gosched()
		}
	}
}

func TestWhatIsNotACreationOfAPodIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWebhook(t, testSettings(), shop())
	for name, request := range map[string]admissionv1.AdmissionRequest{
		"an update":    {Operation: admissionv1.Update},
		"a deletion":   {Operation: admissionv1.Delete},
		"an eviction":  {Operation: admissionv1.Create, SubResource: "eviction"},
		"a connection": {Operation: admissionv1.Connect, SubResource: "exec"},
	} {
		request.UID, request.Namespace, request.Kind = "u", "shop", metav1.GroupVersionKind{Version: "v1", Kind: "Pod"}
		request.Object = runtime.RawExtension{Raw: []byte(apiPod)}
		response := w.send(t, admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}, Request: &request})
		if !response.Allowed || len(response.Patch) > 0 {
			t.Errorf("%s: %+v", name, response)
		}
	}
}

func TestAPodThatCannotBeLookedAtIsTriedAgain(t *testing.T) {
	t.Parallel()
	full := newWebhook(t, testSettings(), shop())
	for name, c := range map[string]struct {
		change func(*inject.Options)
		want   string
	}{
		"no roots yet": {func(o *inject.Options) { o.CABundle = func() []byte { return nil } }, "certificate authority is not known yet"},
		"no version": {func(o *inject.Options) {
			o.ServerVersion = func(context.Context) (string, error) { return "", errors.New("away") }
		}, "asking the API server for its version: away"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := between(t, full, full, clock.NewFake(time.Unix(0, 0)), c.change)
			if got := w.create(t, []byte(apiPod)); !strings.Contains(got.refused, c.want) || !strings.Contains(got.refused, "try again") {
				t.Errorf("refused %q; want %q", got.refused, c.want)
			}
		})
	}
}

func TestCallsThatCannotBeUnderstoodAreRefused(t *testing.T) {
	t.Parallel()
	w := newWebhook(t, testSettings(), shop())
	head := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"`
	for name, c := range map[string]struct {
		method, body string
		code         int
	}{
		"nothing":         {http.MethodPost, "", http.StatusBadRequest},
		"another version": {http.MethodPost, `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview"}`, http.StatusBadRequest},
		"no request":      {http.MethodPost, head + "}", http.StatusBadRequest},
		"another kind":    {http.MethodPost, head + `,"request":{"uid":"u","kind":{"kind":"Secret","version":"v1"}}}`, http.StatusBadRequest},
		"too much":        {http.MethodPost, head + `,"x":"` + strings.Repeat("x", review.MaxBody) + `"}`, http.StatusRequestEntityTooLarge},
		"a visit":         {http.MethodGet, "", http.StatusMethodNotAllowed},
	} {
		recorder := httptest.NewRecorder()
		w.handler.ServeHTTP(recorder, httptest.NewRequestWithContext(t.Context(), c.method, inject.Path, bytes.NewBufferString(c.body)))
		if recorder.Code != c.code {
			t.Errorf("%s: status %d, want %d: %s", name, recorder.Code, c.code, recorder.Body)
		}
	}
}

// FuzzPods sends anything at all as a pod. What is allowed must come with a patch that fits, and be left alone the second time.
func FuzzPods(f *testing.F) {
	w := newWebhook(f, testSettings(), shop())
	for _, seed := range []string{
		apiPod, "{}", "null", "[]", `{"spec":{"containers":null}}`, `{"metadata":{"labels":{"app":"api"}},"spec":null}`,
		`{"metadata":{"labels":{"app":"api"},"annotations":null},"spec":{"volumes":[],"initContainers":[{}],"securityContext":null}}`,
		`{"metadata":{"labels":{"app":"api"},"annotations":{"appmesh.k8s.aws/secretMounts":"a.b:/c","appmesh.k8s.aws/sidecarEnvJson":"[{}]"}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, pod []byte) {
		if !json.Valid(pod) {
			return // the API server sends JSON
		}
		var meta struct{ Metadata metav1.ObjectMeta }
		if json.Unmarshal(pod, &meta) != nil {
			return // nor can the test read where it is
		}
		got := w.create(t, pod)
		if got.refused != "" || !got.patched {
			return
		}
		if again := w.create(t, got.pod); again.refused != "" || again.patched {
			t.Errorf("%s\nbecame %s\nand is not left alone: %+v", pod, got.pod, again)
		}
	})
}
