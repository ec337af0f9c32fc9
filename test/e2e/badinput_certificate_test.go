// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

//go:build e2e

package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"fmt"
	"math/big"
	"testing"
	"time"
)

// entry is what the Secret of the control plane's certificates holds under a name, decoded from PEM.
func (s *shell) entry(name string) []byte {
	s.t.Helper()
	text := s.run("kubectl -n appmesh-system get secret appmesh-controller-certs -o jsonpath='{.data." + replace(name, ".", `\.`) + "}' | base64 -d").text
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		s.t.Fatalf("the Secret's %s is no PEM: %q", name, text)
	}
	return block.Bytes
}

// putEntries writes entries of the Secret, as somebody does by hand.
func (s *shell) putEntries(entries map[string][]byte) {
	s.t.Helper()
	patch := ""
	for name, content := range entries {
		patch += fmt.Sprintf(`,%q:%q`, name, base64.StdEncoding.EncodeToString(content))
	}
	s.run(`kubectl -n appmesh-system patch secret appmesh-controller-certs --type merge -p '{"data":{` + patch[1:] + `}}'`)
}

// expired is a serving certificate of the control plane's own root that ended yesterday, and its key.
func expired(s *shell) map[string][]byte {
	s.t.Helper()
	root, err := x509.ParseCertificate(s.entry("ca.crt"))
	if err != nil {
		s.t.Fatal(err)
	}
	rootKey, err := x509.ParseECPrivateKey(s.entry("ca.key"))
	if err != nil {
		s.t.Fatal(err)
	}
	before, err := x509.ParseCertificate(s.entry("tls.crt"))
	if err != nil {
		s.t.Fatal(err)
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		s.t.Fatal(err)
	}
	end := now().Add(-24 * time.Hour)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: before.Subject.CommonName}, DNSNames: before.DNSNames, NotBefore: end.Add(-time.Hour), NotAfter: end,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, root, key.Public(), rootKey)
	if err != nil {
		s.t.Fatal(err)
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		s.t.Fatal(err)
	}
	return map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), "tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}
}

const controllerLog = "kubectl -n appmesh-system logs -l app.kubernetes.io/name=appmesh-controller --tail=-1"

// TestACertificateThatExpiredWhileTheControllerWasAway writes a certificate that is over into the Secret, and then what no certificate is, as somebody does by hand. The
// controller makes a new one of the same root, says so, and webhooks and proxies go on.
func TestACertificateThatExpiredWhileTheControllerWasAway(t *testing.T) {
	s := shop(t, "expired", shopMesh, shopService, shopApps)
	touched(t)
	s.shopOpens("expired")
	// change is what the webhooks must answer for.
	change := func(name string) {
		s.apply("expired", replace(`
apiVersion: appmesh.k8s.aws/v1beta2
kind: VirtualNode
metadata: {name: NAME, namespace: SHOP}
spec: {podSelector: {matchLabels: {app: another}}}
`, "NAME", name))
		s.condition("virtualnode/"+name, "expired", "Programmed", "True", "")
	}
	root := string(s.entry("ca.crt"))
	s.run(controllerAway)
	s.putEntries(expired(s))
	s.run(controllerBack)
	s.soon(controllerLog, "new serving certificate", "it expired at")
	change("after-expiry")
	// By hand, while it runs.
	s.putEntries(map[string][]byte{"tls.crt": []byte("-----BEGIN CERTIFICATE-----\nbm8=\n-----END CERTIFICATE-----\n"), "ca.key": []byte("edited")})
	s.soon(controllerLog, "what it held was damaged", "tls.crt: ", "ca.key: ")
	change("after-damage")
	if got := string(s.entry("ca.crt")); got != root {
		t.Error("the proxies' root is no longer the one that signs")
	}
	s.soon(askAPI, "api 200")
	s.run("kubectl -n $NS rollout restart deployment && kubectl -n $NS rollout status deployment/web --timeout=180s && kubectl -n $NS rollout status deployment/api --timeout=180s")
	s.podsReady("expired", "app=web", "2/2", 1)
	s.soon(askAPI, "api 200")
}
