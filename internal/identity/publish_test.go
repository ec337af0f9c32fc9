// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package identity_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/identity"
)

func TestTheRootsArePublishedWithinTheRulesAndNotWrittenAgain(t *testing.T) {
	t.Parallel()
	in := install(t, "published")
	deployment := in.deployment()
	in.create(deployment)
	config := in.restricted()
	replica, stop := in.run(func(o *identity.Options) { o.Config = config })
	published := &corev1.ConfigMap{ObjectMeta: in.meta(identity.Bundle)}
	holds := func() bool {
		err := in.Get(t.Context(), client.ObjectKeyFromObject(published), published)
		return err == nil && published.Data[identity.BundleKey] == string(replica.CABundle())
	}
	in.eventually("the roots in the ConfigMap", holds)
	if len(published.OwnerReferences) != 1 || published.OwnerReferences[0].UID != deployment.UID {
		t.Errorf("owners %v; want the Deployment", published.OwnerReferences)
	}
	version := published.ResourceVersion
	stop()
	replica, stop = in.run(func(o *identity.Options) { o.Config = config })
	stop()
	if !holds() || published.ResourceVersion != version {
		t.Error("a replica that found the roots published wrote them again")
	}

	clients, err := kubernetes.NewForConfig(in.options.Config)
	if err != nil {
		t.Fatal(err)
	}
	roots := identity.NewRoots(clients, in.options.Namespace, in.clock, in.options.Logger)
	if roots.PEM() != nil {
		t.Error("roots are known before they were read")
	}
	go roots.Run(t.Context())
	in.eventually("the roots read", func() bool { return string(roots.PEM()) == string(replica.CABundle()) })

	published.Data[identity.BundleKey] = "by hand"
	if err := in.Update(t.Context(), published); err != nil {
		t.Fatal(err)
	}
	replica, _ = in.run(func(o *identity.Options) { o.Config = config })
	in.eventually("the roots in the place of what was written by hand", holds)

	if err := in.Delete(t.Context(), published); err != nil {
		t.Fatal(err)
	}
	in.eventually("a complaint that the roots are gone", func() bool {
		in.clock.Advance(30 * time.Second)
		return strings.Contains(in.log.String(), "the control plane's roots cannot be read")
	})
	if string(roots.PEM()) != string(replica.CABundle()) {
		t.Error("roots that cannot be read any more are forgotten")
	}
}
