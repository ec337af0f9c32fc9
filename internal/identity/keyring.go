// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package identity

import (
	"bytes"
	"cmp"
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"maps"
	"slices"
	"time"
)

// The entries of the Secret.
const (
	entryRoots      = "ca.crt"      // all that clients shall trust, the one that signs first
	entryRootKey    = "ca.key"      // the key that signs
	entryNextKey    = "ca-next.key" // the key that will sign once its certificate has been out long enough; absent most of the time
	entryServing    = "tls.crt"
	entryServingKey = "tls.key"
)

// keyring is what the Secret holds. Every certificate of roots is trusted; signer and next are keys of two of them.
type keyring struct {
	roots        []*x509.Certificate
	signer, next *ecdsa.PrivateKey
	serving      *x509.Certificate
	servingKey   *ecdsa.PrivateKey
}

// readKeyring takes what can be read, and says what cannot.
func readKeyring(data map[string][]byte) (k keyring, faults []string) {
	fault := func(entry string, err error) {
		if err != nil {
			faults = append(faults, fmt.Sprintf("%s: %v", entry, err))
		}
	}
	var err error
	k.roots, err = readCertificates(data[entryRoots])
	fault(entryRoots, err)
	k.signer, err = readKey(data[entryRootKey])
	fault(entryRootKey, err)
	if text, ok := data[entryNextKey]; ok {
		k.next, err = readKey(text)
		fault(entryNextKey, err)
	}
	serving, err := readCertificates(data[entryServing])
	fault(entryServing, err)
	if len(serving) > 0 {
		k.serving = serving[0]
	}
	k.servingKey, err = readKey(data[entryServingKey])
	fault(entryServingKey, err)
	return k, faults
}

// readCertificates returns those before the first fault too.
func readCertificates(text []byte) ([]*x509.Certificate, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errNothing
	}
	var list []*x509.Certificate
	for len(bytes.TrimSpace(text)) > 0 {
		block, rest := pem.Decode(text)
		if block == nil || block.Type != "CERTIFICATE" {
			return list, errNotPEM
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return list, err
		}
		list, text = append(list, certificate), rest
	}
	return list, nil
}

func readKey(text []byte) (*ecdsa.PrivateKey, error) {
	if len(bytes.TrimSpace(text)) == 0 {
		return nil, errNothing
	}
	block, _ := pem.Decode(text)
	if block == nil || block.Type != "EC PRIVATE KEY" {
		return nil, errNotPEM
	}
	return x509.ParseECPrivateKey(block.Bytes)
}

// data is the keyring as the Secret holds it. The same keyring gives the same bytes.
func (k *keyring) data() (map[string][]byte, error) {
	data := map[string][]byte{entryRoots: k.bundle(), entryServing: encodeCertificate(k.serving)}
	keys := map[string]*ecdsa.PrivateKey{entryRootKey: k.signer, entryServingKey: k.servingKey}
	if k.next != nil {
		keys[entryNextKey] = k.next
	}
	for entry, key := range keys {
		encoded, err := x509.MarshalECPrivateKey(key)
		if err != nil {
			return nil, fmt.Errorf("encoding %s: %w", entry, err)
		}
		data[entry] = pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
	}
	return data, nil
}

// bundle is the PEM of all that clients shall trust.
func (k *keyring) bundle() []byte {
	var all bytes.Buffer
	for _, root := range k.roots {
		all.Write(encodeCertificate(root))
	}
	return all.Bytes()
}

func encodeCertificate(c *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Raw})
}

// rootOf is the certificate of a key among the roots; nil for none.
func (k *keyring) rootOf(key *ecdsa.PrivateKey) *x509.Certificate {
	if key == nil {
		return nil
	}
	for _, root := range k.roots {
		if public, ok := root.PublicKey.(*ecdsa.PublicKey); ok && public.Equal(key.Public()) {
			return root
		}
	}
	return nil
}

// certificate is what a server shows.
func (k *keyring) certificate() *tls.Certificate {
	return &tls.Certificate{Certificate: [][]byte{k.serving.Raw}, PrivateKey: k.servingKey, Leaf: k.serving}
}

// tend brings the keyring into the state that it should have now, and says what it did and why. Nothing done is an empty list.
func (k *keyring) tend(now time.Time, names []string) (done []string, err error) {
	act := func(format string, args ...any) { done = append(done, fmt.Sprintf(format, args...)) }
	k.roots = slices.DeleteFunc(k.roots, func(root *x509.Certificate) bool {
		gone := !root.IsCA || !now.Before(root.NotAfter)
		if gone {
			act("no longer trusted: root %s, valid until %s", root.Subject.CommonName, root.NotAfter.Format(time.RFC3339))
		}
		return gone
	})
	if err := k.tendSigner(now, act); err != nil {
		return done, err
	}
	k.sort()
	if why := k.unfit(now, names); why != "" {
		if k.serving, k.servingKey, err = issue(k.rootOf(k.signer), k.signer, names, now); err != nil {
			return done, err
		}
		act("new serving certificate, valid until %s: %s", k.serving.NotAfter.Format(time.RFC3339), why)
	}
	return done, nil
}

// tendSigner sees to it that there is a key that signs, and in time another.
func (k *keyring) tendSigner(now time.Time, act func(string, ...any)) error {
	if k.rootOf(k.next) == nil {
		k.next = nil
	}
	signer := k.rootOf(k.signer)
	if signer == nil || now.Before(signer.NotBefore) {
		why := "there was none whose key is at hand"
		if k.signer, k.next, signer = k.next, nil, k.rootOf(k.next); signer == nil {
			root, key, err := newRoot(now)
			if err != nil {
				return err
			}
			k.roots, k.signer, signer = append(k.roots, root), key, root
		}
		act("new root %s signs from now on, since %s; proxies started before trust it only if they were given it", signer.Subject.CommonName, why)
	}
	if k.next == nil && !now.Before(renewal(signer)) {
		root, key, err := newRoot(now)
		if err != nil {
			return err
		}
		k.roots, k.next = append(k.roots, root), key
		act("new root %s is given out, and signs from %s on", root.Subject.CommonName, k.change().Format(time.RFC3339))
	}
	if k.next != nil && !now.Before(k.change()) {
		k.signer, k.next = k.next, nil
		act("root %s signs from now on; the one before stays trusted until %s", k.rootOf(k.signer).Subject.CommonName, signer.NotAfter.Format(time.RFC3339))
	}
	return nil
}

// change is when the next key begins to sign: its certificate must have been out for the overlap, but the one before must still outlive what it signs.
func (k *keyring) change() time.Time {
	at := k.rootOf(k.next).NotBefore.Add(backdate + overlap)
	if last := k.rootOf(k.signer).NotAfter.Add(-servingLife); last.Before(at) {
		return last
	}
	return at
}

// sort puts the root that signs first, then the one that will, then the others from the newest to the oldest.
func (k *keyring) sort() {
	rank := map[*x509.Certificate]int{k.rootOf(k.signer): -2}
	if next := k.rootOf(k.next); next != nil {
		rank[next] = -1
	}
	slices.SortStableFunc(k.roots, func(a, b *x509.Certificate) int {
		return cmp.Or(cmp.Compare(rank[a], rank[b]), b.NotAfter.Compare(a.NotAfter), bytes.Compare(a.Raw, b.Raw))
	})
	k.roots = slices.CompactFunc(k.roots, func(a, b *x509.Certificate) bool { return bytes.Equal(a.Raw, b.Raw) })
}

// unfit says why the serving certificate must be replaced; empty if it need not be.
func (k *keyring) unfit(now time.Time, names []string) string {
	c := k.serving
	if c == nil || k.servingKey == nil {
		return "there was none"
	}
	if public, ok := c.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(k.servingKey.Public()) {
		return "its key belonged to another certificate"
	}
	if !slices.Equal(slices.Sorted(slices.Values(c.DNSNames)), slices.Sorted(slices.Values(names))) {
		return fmt.Sprintf("it was for the names %v", c.DNSNames)
	}
	if !now.Before(c.NotAfter) {
		return "it expired at " + c.NotAfter.Format(time.RFC3339)
	}
	if !now.Before(renewal(c)) {
		return "two thirds of its life are over"
	}
	pool := x509.NewCertPool()
	for _, root := range k.roots {
		pool.AddCert(root)
	}
	if _, err := c.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}); err != nil {
		return "it was not to be trusted: " + err.Error()
	}
	return ""
}

// deadline is when something must be done next.
func (k *keyring) deadline() time.Time {
	all := []time.Time{renewal(k.serving)}
	if k.next == nil {
		all = append(all, renewal(k.rootOf(k.signer)))
	} else {
		all = append(all, k.change())
	}
	for _, root := range k.roots {
		all = append(all, root.NotAfter)
	}
	return slices.MinFunc(all, time.Time.Compare)
}

// same says that all our entries of a Secret are as they should be.
func same(have, want map[string][]byte) bool {
	for _, entry := range []string{entryRoots, entryRootKey, entryNextKey, entryServing, entryServingKey} {
		if !bytes.Equal(have[entry], want[entry]) {
			return false
		}
	}
	_, stray := have[entryNextKey]
	_, wanted := want[entryNextKey]
	return stray == wanted
}

// merged is a Secret's data with our entries as they should be, and those of others as they were.
func merged(have, want map[string][]byte) map[string][]byte {
	all := maps.Clone(have)
	if all == nil {
		all = map[string][]byte{}
	}
	delete(all, entryNextKey)
	maps.Copy(all, want)
	return all
}
