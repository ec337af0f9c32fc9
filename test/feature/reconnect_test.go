// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package feature_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nothing is what a proxy that has all is sent.
var nothing []string

func wantInvalid(t *testing.T, err error, mention string) {
	t.Helper()
	if got := status.Code(err); err == nil || got != codes.InvalidArgument {
		t.Errorf("the stream ended with %v (%v), want code 3", err, got)
	} else if !strings.Contains(status.Convert(err).Message(), mention) {
		t.Errorf("the message %q does not mention %s", status.Convert(err).Message(), mention)
	}
}

func TestANodeThatDoesNotExistIsRefusedWithItsName(t *testing.T) {
	t.Parallel()
	each(t, func(w *world, via wire) {
		t := w.t
		p := newProxy(w, "mesh/m1/virtualNode/nobody_shop", via)
		p.connect()
		wantInvalid(t, p.end(), "nobody_shop")
	})
}

func TestANodeIDThatSaysNothingIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, base())
	for name, id := range map[string]string{
		"empty":               "",
		"a bare name":         "web_shop",
		"an ARN of a service": "arn:aws:appmesh:us-west-2:000000000000:mesh/m1/virtualService/api.shop.svc.cluster.local",
		"odd characters":      "mesh/m1/virtualNode/we\u202eb\n_shop",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProxy(w, id, new(delta))
			p.connect()
			if got := status.Code(p.end()); got != codes.InvalidArgument {
				t.Errorf("code %v, want InvalidArgument", got)
			}
		})
	}
}

func TestShortAndFullARNsNameTheSameNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, base())
	want := settled(t, w, new(delta))
	got := newProxy(w, "arn:aws:appmesh:us-west-2:000000000000:"+web, new(delta))
	got.connect()
	got.settle()
	for kind := range urls {
		want.mu.Lock()
		versions := map[string]string{}
		for name, r := range want.held[kind] {
			versions[name] = r.version
		}
		want.mu.Unlock()
		got.mu.Lock()
		for name, r := range got.held[kind] {
			if versions[name] != r.version {
				t.Errorf("%s %s differs", kind, name)
			}
			delete(versions, name)
		}
		got.mu.Unlock()
		if len(versions) > 0 {
			t.Errorf("%s: the full ARN lacks %v", kind, versions)
		}
	}
}

func TestAProxyThatComesBackWithAllItHasIsSentNothingAgain(t *testing.T) {
	t.Parallel()
	each(t, func(w *world, via wire) {
		t := w.t
		p := settled(t, w, via)
		p.disconnect()
		p.connect()
		recognised(w)
		if diff := cmp.Diff(nothing, beat(t, p), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("sent again (-want +got):\n%s", diff)
		}
	})
}

func TestARestartedControlPlaneSendsNothingToAProxyThatHasAll(t *testing.T) {
	t.Parallel()
	each(t, func(w *world, via wire) {
		t := w.t
		p := settled(t, w, via)
		w.end()
		if err := p.end(); err != nil {
			t.Errorf("the stream ended with %v, want code 0", err)
		}
		w.start()
		p.connect()
		recognised(w)
		if diff := cmp.Diff(nothing, beat(t, p), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("sent again (-want +got):\n%s", diff)
		}
	})
}

func TestWhatChangedWhileAProxyWasAwayIsSentWhenItComesBack(t *testing.T) {
	t.Parallel()
	each(t, func(w *world, via wire) {
		t := w.t
		p := settled(t, w, via)
		witness := settled(t, w, new(delta))
		p.disconnect()
		w.write("10-web.yaml", webNode("pulse"))
		witness.await("the change", func() bool { return len(witness.log) == 2 })
		p.connect()
		p.await("routes and removals", func() bool { return len(p.log) >= 2 })
		got := beat(t, p)
		want := []string{"RDS ~" + apiRoutes, "CDS -" + v1 + " -" + v2}
		if _, whole := via.(*sotw); whole {
			// The first set of clusters is the new one: the server cannot name what it does not know.
			slices.Reverse(want)
			// Nor can it tell which resources of a type the client still has, once one of them is another.
			got = slices.DeleteFunc(got, func(line string) bool { return strings.Contains(line, " =") })
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the proxy got (-want +got):\n%s", diff)
		}
	})
}

// recognised waits until the control plane knows all that its one proxy has brought back, so that what changes from then on is new to it. The state of
// the world has one version for all resources of a type: a change before that would have all of them sent again.
func recognised(w *world) {
	w.t.Helper()
	w.eventually("the proxy to be recognised", func() bool {
		var proxies []struct {
			Types []struct{ Resources []struct{ Acked bool } }
		}
		body, err := w.get("/debug/proxies")
		if err != nil || json.Unmarshal(body, &proxies) != nil || len(proxies) != 1 || len(proxies[0].Types) != len(urls) {
			return false
		}
		for _, t := range proxies[0].Types {
			if len(t.Resources) == 0 {
				return false
			}
		}
		return true
	})
}
