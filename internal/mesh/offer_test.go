// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh_test

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// TestViewsThatShareOffersAreThoseMadeAlone makes the Views of all nodes of random meshes from one set of Offers, and compares them, what they have read and what was found with Views
// that share nothing. No View may change what others share.
func TestViewsThatShareOffersAreThoseMadeAlone(t *testing.T) {
	t.Parallel()
	dropped := 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 2))
		now := newModel(aMesh(), randomObject(r))
		for range 60 {
			now = now.with(randomObject(r))
			dropped += compareShared(t, now, "n0", "n1", "n2")
			if t.Failed() {
				t.Fatalf("seed %d", seed)
			}
		}
	}
	if dropped == 0 {
		t.Error("no View left out a part of an Offer")
	}
}

// TestACallerThatLeavesOutAPortLeavesItToOthers has one caller of two services that it cannot tell apart on a port, two that may call a service over TLS alone on
// all ports or on one, and one that has no such trouble.
func TestACallerThatLeavesOutAPortLeavesItToOthers(t *testing.T) {
	t.Parallel()
	now := newModel(
		aMesh(), aClient("both", "a.prod", "b.prod"), aClient("one", "b.prod"), byDefault(aClient("strict", "b.prod"), policy(nil)), byDefault(aClient("partly", "b.prod"), policy(nil, 80)), aService("a.prod", byNode("a")), aService("b.prod", byNode("b")),
		aNode("a", "http/80"), aNode("b", "tcp/79", "tcp/80", "tcp/81"), aKubernetesService("a", "10.0.0.1", 80), aKubernetesService("b", "10.0.0.1", 80),
	)
	compareShared(t, now, "both", "one", "strict", "partly", "one")
	both, _ := now.view(t, "both")
	one, _ := now.view(t, "one")
	strict, _ := now.view(t, "strict")
	partly, _ := now.view(t, "partly")
	if diff := cmp.Diff([][]string{
		{"a.prod:80 a.prod -> a:80=100", "b.prod:79 b.prod -> b:79=100", "b.prod:81 b.prod -> b:81=100"},
		{"b.prod:79 b.prod -> b:79=100", "b.prod:80 b.prod -> b:80=100", "b.prod:81 b.prod -> b:81=100"},
		{"b.prod:79 -", "b.prod:80 -", "b.prod:81 -"},
		{"b.prod:79 b.prod -> b:79=100", "b.prod:80 b.prod ->", "b.prod:81 b.prod -> b:81=100"},
	}, [][]string{answers(both), answers(one), answers(strict), answers(partly)}); diff != "" {
		t.Errorf("routes (-want +got):\n%s", diff)
	}
	// A node that no request can reach is none of a caller's business.
	if diff := cmp.Diff([][]string{{"a:80", "b:79", "b:81"}, {"b:79", "b:80", "b:81"}, nil, {"b:79", "b:81"}}, [][]string{nodeNames(both), nodeNames(one), nodeNames(strict), nodeNames(partly)}); diff != "" {
		t.Errorf("nodes (-want +got):\n%s", diff)
	}
}

// compareShared counts the services of Views that differ from their Offers.
func compareShared(t *testing.T, now model, nodes ...string) int {
	t.Helper()
	type made struct {
		offer    *mesh.Offer
		keys     []mesh.Key
		findings []mesh.Finding
	}
	offers := map[string]made{}
	differ := 0
	for range 2 { // again, for a View may have spoilt the Offers of one before it
		for _, node := range nodes {
			alone, aloneKeys, aloneFindings := mesh.ViewOf(now, mesh.NodeKey("m", node), mesh.Profile{})
			used := map[string]made{}
			shared, keys, findings := mesh.ViewWith(now, mesh.NodeKey("m", node), mesh.Profile{}, func(service string) *mesh.Offer {
				o, ok := offers[service]
				if !ok {
					o.offer, o.keys, o.findings = mesh.OfferOf(now, mesh.VirtualServiceKey("m", service))
					offers[service] = o
				}
				used[service] = o
				return o.offer
			})
			for _, o := range used {
				keys, findings = append(keys, o.keys...), append(findings, o.findings...)
			}
			slices.SortFunc(keys, mesh.Key.Compare)
			if diff := cmp.Diff([]any{text(t, alone), aloneKeys, aloneFindings}, []any{text(t, shared), slices.Compact(keys), mesh.SortFindings(findings)}, cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s (-alone +shared):\n%s", node, diff)
			}
			if !alone.Equal(shared) {
				t.Errorf("the Views of %s are not equal", node)
			}
			if shared != nil && len(shared.Services) < len(used) {
				differ++
			}
		}
	}
	for service, o := range offers {
		if again, _, _ := mesh.OfferOf(now, mesh.VirtualServiceKey("m", service)); again.Since(o.offer) != o.offer {
			t.Errorf("a View has changed the Offer of %s", service)
		}
	}
	return differ
}

func text(t *testing.T, v *mesh.View) string {
	t.Helper()
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
