// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package installation

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/identity"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

// soon is how long before its end a certificate should have been renewed.
const soon = 7 * 24 * time.Hour

// trust is somebody who is told to trust the certificate of a Service.
type trust struct {
	at      mesh.Source
	service client.ObjectKey
	bundle  []byte
}

// checkCertificates looks at the Secrets of the charts' certificates, and whether the API server trusts what is in them.
func (k *checkup) checkCertificates(ctx context.Context) error {
	trusts := k.trusts()
	for _, o := range []identity.Options{identity.ForController(k.System, ""), identity.ForInjector(k.System, "")} {
		if o.Owner == injectorName && !slices.ContainsFunc(k.mutating, func(c admissionregistrationv1.MutatingWebhookConfiguration) bool { return c.Name == injectorName }) {
			continue // that chart is not installed
		}
		if o.Owner == controllerName && len(k.replicas()) == 0 {
			continue // there is nobody to have a certificate, which is said elsewhere
		}
		at := mesh.Source{Kind: "Secret", Namespace: k.System, Name: o.Secret}
		secret := &corev1.Secret{}
		err := k.Get(ctx, client.ObjectKey{Namespace: k.System, Name: o.Secret}, secret)
		switch {
		case apierrors.IsNotFound(err):
			k.wrong(ReasonCertificate, at, "the control plane has no certificate, so neither the API server nor a proxy can talk to it",
				fmt.Sprintf("it makes one when it starts: kubectl -n %s logs deploy/%s", k.System, o.Owner))
		case err != nil:
			if err := k.unreadable("secrets", err); err != nil {
				return err
			}
		default:
			k.checkSecret(at, secret, o.Owner, o.Service, trusts)
		}
	}
	return nil
}

// trusts are all that name a Service of the control plane's namespace with a bundle.
func (k *checkup) trusts() []trust {
	var list []trust
	for _, w := range k.webhooks() {
		if s := w.client.Service; w.ours() && s != nil && len(w.client.CABundle) > 0 {
			list = append(list, trust{w.at, client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, w.client.CABundle})
		}
	}
	for i := range k.definitions {
		c := k.definitions[i].Spec.Conversion
		if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil || c.Webhook.ClientConfig.Service == nil || len(c.Webhook.ClientConfig.CABundle) == 0 {
			continue
		}
		s := c.Webhook.ClientConfig.Service
		list = append(list, trust{mesh.Source{Kind: kindDefinition, Name: k.definitions[i].Name}, client.ObjectKey{Namespace: s.Namespace, Name: s.Name}, c.Webhook.ClientConfig.CABundle})
	}
	return list
}

func (k *checkup) checkSecret(at mesh.Source, secret *corev1.Secret, owner, service string, trusts []trust) {
	again := fmt.Sprintf("kubectl -n %s delete secret %s; the control plane makes a new one at once", k.System, secret.Name)
	pair, err := tls.X509KeyPair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if err != nil {
		k.wrong(ReasonCertificate, at, fmt.Sprintf("the control plane's certificate is damaged (%v), so neither the API server nor a proxy can talk to it", err), again)
		return
	}
	certificate := pair.Leaf
	restart := fmt.Sprintf("kubectl -n %s rollout restart deploy/%s; if it stays so: %s", k.System, owner, again)
	switch left := certificate.NotAfter.Sub(k.Now); {
	case left <= 0:
		k.wrong(ReasonCertificate, at, fmt.Sprintf("the control plane's certificate has ended on %s, so neither the API server nor a proxy talks to it", day(certificate.NotAfter)), restart)
		return
	case left < soon:
		k.odd(ReasonCertificate, at, fmt.Sprintf("the control plane's certificate ends on %s and should have been renewed long before", day(certificate.NotAfter)), restart)
	}
	told := map[mesh.Source]bool{}
	for _, t := range trusts {
		if t.service != (client.ObjectKey{Namespace: k.System, Name: service}) || told[t.at] {
			continue
		}
		if err := trusted(certificate, t, k.Now); err != nil {
			told[t.at] = true
			k.wrong(ReasonCertificate, t.at, fmt.Sprintf("the API server is told to trust another certificate than the one that the control plane has (Secret %s: %v), so it calls it in vain", secret.Name, err),
				fmt.Sprintf("if a tool that applies manifests writes caBundle, tell it to leave that field alone; then kubectl -n %s rollout restart deploy/%s", k.System, owner))
		}
	}
}

// trusted verifies a certificate as the API server does.
func trusted(certificate *x509.Certificate, t trust, now time.Time) error {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(t.bundle) {
		return errors.New("the bundle holds no certificate")
	}
	_, err := certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: t.service.Name + "." + t.service.Namespace + ".svc", CurrentTime: now})
	return err
}

func day(t time.Time) string { return t.UTC().Format(time.DateOnly) }
