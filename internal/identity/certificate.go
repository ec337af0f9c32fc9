// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package identity

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"
)

// The lives of certificates. A new one is valid from a little before it was made, for clocks that go slow.
const (
	day         = 24 * time.Hour
	rootLife    = 10 * 365 * day
	servingLife = 90 * day
	backdate    = time.Hour
	// overlap is how long a new root is given out before it signs: a proxy learns it when its pod starts.
	overlap = 365 * day
)

var (
	errNothing = errors.New("it is missing or empty")
	errNotPEM  = errors.New("it is not the PEM that it should be")
)

// renewal is when two thirds of a certificate's life are over.
func renewal(c *x509.Certificate) time.Time {
	return c.NotBefore.Add(c.NotAfter.Sub(c.NotBefore) / 3 * 2)
}

func serial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
}

// newRoot makes a certificate authority. Its name is its own, so that nobody takes it for the one before.
func newRoot(now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	number, err := serial()
	if err != nil {
		return nil, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: fmt.Sprintf("tulle %032x", number)[:14]},
		NotBefore: now.Add(-backdate), NotAfter: now.Add(rootLife),
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageCRLSign,
	}
	return sign(template, template, key, key)
}

// issue makes a serving certificate, which does not outlive the root.
func issue(root *x509.Certificate, signer *ecdsa.PrivateKey, names []string, now time.Time) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	number, err := serial()
	if err != nil {
		return nil, nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	until := now.Add(servingLife)
	if root.NotAfter.Before(until) {
		until = root.NotAfter
	}
	template := &x509.Certificate{
		SerialNumber: number, Subject: pkix.Name{CommonName: "tulle"}, DNSNames: names,
		NotBefore: now.Add(-backdate), NotAfter: until, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	return sign(template, root, key, signer)
}

// sign makes the template's certificate for key, by the signer of parent.
func sign(template, parent *x509.Certificate, key, signer *ecdsa.PrivateKey) (*x509.Certificate, *ecdsa.PrivateKey, error) {
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		return nil, nil, fmt.Errorf("signing a certificate: %w", err)
	}
	certificate, err := x509.ParseCertificate(raw)
	return certificate, key, err
}
