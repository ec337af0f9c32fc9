// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package inject

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/tulle-mesh/tulle/internal/admission/review"
	"github.com/tulle-mesh/tulle/internal/decode"
	"github.com/tulle-mesh/tulle/internal/kube/roster"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// poll is the time between two looks into the cache while waiting for it.
const poll = 50 * time.Millisecond

// belonging is what a pod belongs to, out of what there is in its namespace.
type belonging struct {
	decode.Membership

	roster *decode.Roster
}

// settle finds what a pod belongs to. Where that is nothing, what it belongs to may have been created a moment ago, or come right behind it in the same file:
// the cache gets some time, and in the end the API server itself is asked.
func (i *injector) settle(ctx context.Context, s *subject) (belonging, error) {
	deadline := i.Clock.Now().Add(i.Settle)
	for {
		found, err := roster.Read(ctx, i.Cached, i.Decode, s.pod.Namespace)
		if err != nil {
			return belonging{}, err
		}
		b := belonging{Membership: found.Membership(s.pod), roster: found}
		if len(b.Members) > 0 || b.barePasses(s) {
			return b, nil
		}
		if !i.Clock.Now().Before(deadline) {
			break
		}
		select {
		case <-ctx.Done():
			return b, ctx.Err()
		case <-i.Clock.After(poll):
		}
	}
	found, err := roster.Read(ctx, i.Live, i.Decode, s.pod.Namespace)
	if err != nil {
		return belonging{}, err
	}
	return belonging{Membership: found.Membership(s.pod), roster: found}, nil
}

// barePasses says whether a pod that belongs to nothing may start: one made by hand, in a namespace whose nodes all take their pods by the name of what made them.
// So a shell to try things out with can be run where v1beta1 is used, as it always could.
func (b belonging) barePasses(s *subject) bool {
	return len(b.Members) == 0 && len(b.Idle) == 0 && metav1.GetControllerOf(s.pod) == nil && b.roster.OnlyLegacy()
}

// one is the one node or gateway that the pod's proxy stands for. Without one, the verdict or the error says what becomes of the pod.
func (b belonging) one(s *subject, mode mode) (*decode.Member, review.Verdict, error) {
	switch {
	case len(b.Members) == 1:
		return &b.Members[0], review.Verdict{}, nil
	case len(b.Members) > 1:
		return nil, review.Verdict{}, b.several(s)
	case b.barePasses(s):
		return nil, review.Verdict{Warnings: []string{fmt.Sprintf("%s starts without a proxy: it was not made by a Deployment or the like, by whose name a VirtualNode of v1beta1 would take it", s)}}, nil
	case len(b.Idle) > 0:
		why := make([]string, 0, len(b.Idle))
		for _, m := range b.Idle {
			why = append(why, fmt.Sprintf("%s is not in force: %s", m, m.Idle))
		}
		return nil, review.Verdict{}, review.Refusef("%s is not started without its proxy, and what it belongs to cannot have one yet: %s. Mend that; the pod is tried again. %s",
			s, strings.Join(why, "; "), s.optOut())
	case mode == modeEnabled:
		return nil, review.Verdict{}, b.none(s)
	}
	return nil, review.Verdict{}, nil
}

func (b belonging) several(s *subject) error {
	names := decode.Names(b.Members)
	kinds := map[mesh.Kind]bool{}
	for _, m := range b.Members {
		kinds[m.Key.Kind] = true
	}
	what := "a proxy stands for one of them"
	if len(kinds) > 1 {
		what = "a proxy stands for a node or for a gateway, never for both"
	}
	return review.Refusef("%s belongs to several: %s; %s. Narrow the podSelector of all but one, or change the pod's labels (%s)",
		s, names, what, labels.Set(s.pod.Labels))
}

// maxNamed is how many nodes a message lists.
const maxNamed = 5

// none says why a pod has no node. The words in parentheses are those that scripts know.
func (b belonging) none(s *subject) error {
	set := labels.Set(s.pod.Labels).String()
	if set == "" {
		set = "none"
	}
	var there []string
	for _, m := range b.roster.Candidates() {
		there = append(there, m.String())
	}
	slices.Sort(there)
	if more := len(there) - maxNamed; more > 0 {
		there = append(there[:maxNamed], fmt.Sprintf("%d more", more))
	}
	has := "The namespace has none"
	if len(there) > 0 {
		has = "The namespace has " + strings.Join(there, ", ")
	}
	mend, next := "Create a VirtualNode whose spec.podSelector matches the labels", "make the pod again"
	if b.Owner != "" {
		mend += fmt.Sprintf(" (or, in v1beta1, one named %q)", b.Owner)
		next = "the pod is tried again"
	}
	return review.Refusef("%s is not started without its proxy: no VirtualNode or VirtualGateway of namespace %s takes a pod with its labels: %s "+
		"(sidecarInject enabled but no matching VirtualNode or VirtualGateway found). %s. %s; %s. %s",
		s, s.pod.Namespace, set, has, mend, next, s.optOut())
}
