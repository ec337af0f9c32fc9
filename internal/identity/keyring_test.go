// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package identity

import (
	"bytes"
	"crypto/x509"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// start is the time at which the tests' keyrings are made.
var start = time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC)

// kept is a keyring in its Secret, tended at times of the test's choice.
type kept struct {
	t    *testing.T
	data map[string][]byte
}

var testNames = []string{"a.system.svc", "b.system.svc"}

// at reads, tends and writes, as a replica does, and says what was done.
func (s *kept) at(now time.Time) (keyring, []string) {
	s.t.Helper()
	k, _ := readKeyring(s.data)
	done, err := k.tend(now, testNames)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.data, err = k.data(); err != nil {
		s.t.Fatal(err)
	}
	if why := k.unfit(now, testNames); why != "" {
		s.t.Fatalf("at %v the serving certificate is unfit: %s", now, why)
	}
	if deadline := k.deadline(); !deadline.After(now) {
		s.t.Fatalf("at %v the deadline %v is over", now, deadline)
	}
	return k, done
}

func newKept(t *testing.T) *kept {
	t.Helper()
	s := &kept{t: t}
	s.at(start)
	return s
}

// trusts says whether a client that has the PEM of roots accepts what a server shows.
func trusts(bundle []byte, k keyring, now time.Time) error {
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	_, err := k.serving.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: now, DNSName: testNames[0]})
	return err
}

func TestAKeyringAtRestIsNotWritten(t *testing.T) {
	t.Parallel()
	s := newKept(t)
	before := maps.Clone(s.data)
	_, done := s.at(start.Add(servingLife / 2))
	if len(done) > 0 || !same(before, s.data) {
		t.Errorf("done at rest: %v", done)
	}
	other := maps.Clone(before)
	other["note"] = []byte("somebody's")
	if !same(other, s.data) || !maps.EqualFunc(merged(other, s.data), other, bytes.Equal) {
		t.Error("an entry of somebody else counts as a difference, or is lost")
	}
}

func TestTheServingCertificateIsRenewedAtTwoThirdsOfItsLifeAndTrustedAsBefore(t *testing.T) {
	t.Parallel()
	s := newKept(t)
	bundle := s.data[entryRoots]
	first, _ := s.at(start)
	due := renewal(first.serving)
	if _, done := s.at(due.Add(-time.Second)); len(done) > 0 {
		t.Errorf("renewed too early: %v", done)
	}
	second, done := s.at(due)
	if len(done) != 1 || !strings.Contains(done[0], "two thirds of its life are over") || first.serving.Equal(second.serving) {
		t.Errorf("done %v; want a renewal", done)
	}
	if err := trusts(bundle, second, due); err != nil {
		t.Errorf("a client with the first bundle refuses the second certificate: %v", err)
	}
}

func TestACertificateThatExpiredWhileNothingRanIsReplacedAtOnce(t *testing.T) {
	t.Parallel()
	s := newKept(t)
	late := start.Add(2 * servingLife)
	k, done := s.at(late)
	if len(done) != 1 || !strings.Contains(done[0], "it expired at 2027-04-01") {
		t.Errorf("done %v; want a new certificate for the expired one", done)
	}
	if err := trusts(s.data[entryRoots], k, late); err != nil {
		t.Error(err)
	}
}

func TestOverTwentyFiveYearsNoClientWithABundleOfTheYearBeforeIsLeftBehind(t *testing.T) {
	t.Parallel()
	s := newKept(t)
	bundles := map[time.Time][]byte{}
	roots, now := map[string]bool{}, start
	for now.Before(start.Add(25 * 365 * day)) {
		k, _ := s.at(now)
		for _, root := range k.roots {
			roots[root.Subject.CommonName] = true
		}
		if len(k.roots) > 3 {
			t.Fatalf("%d roots at %v", len(k.roots), now)
		}
		for made, bundle := range bundles {
			if now.Sub(made) > overlap {
				delete(bundles, made)
				continue
			}
			if err := trusts(bundle, k, now); err != nil {
				t.Fatalf("a client with the bundle of %v refuses what is served at %v: %v", made, now, err)
			}
		}
		bundles[now] = s.data[entryRoots]
		now = now.Add(20 * day)
	}
	if len(roots) < 3 {
		t.Errorf("only %d roots in 25 years: the authority was not changed", len(roots))
	}
}

func TestANewRootIsGivenOutLongBeforeItSigns(t *testing.T) {
	t.Parallel()
	s := newKept(t)
	first, _ := s.at(start)
	due := renewal(first.roots[0])
	s.at(due.Add(-day))
	out, done := s.at(due)
	if len(out.roots) != 2 || out.next == nil || !out.roots[0].Equal(first.roots[0]) || len(done) == 0 {
		t.Fatalf("roots %d, done %v; want a second root that does not sign yet", len(out.roots), done)
	}
	if k, _ := s.at(due.Add(overlap - time.Minute)); !k.roots[0].Equal(first.roots[0]) || trusts(encodeCertificate(first.roots[0]), k, due.Add(overlap-time.Minute)) != nil {
		t.Error("the new root signs before its time")
	}
	k, _ := s.at(due.Add(overlap))
	if k.next != nil || !k.roots[0].Equal(out.roots[1]) || len(k.roots) != 2 {
		t.Error("the new root does not sign once it has been out long enough, or the old one is no longer trusted")
	}
	if _, has := s.data[entryNextKey]; has {
		t.Error("the key that signs is still kept as the next one")
	}
	over := first.roots[0].NotAfter
	if k, _ = s.at(over); len(k.roots) != 1 {
		t.Errorf("%d roots once the first has expired", len(k.roots))
	}
}

func TestADamagedSecretIsRepaired(t *testing.T) {
	t.Parallel()
	other := newKept(t)
	now := start.Add(day)
	tests := map[string]struct {
		damage func(data map[string][]byte)
		// trusted says that clients of before must go on trusting what is served.
		trusted bool
		faults  string
		done    string
	}{
		"an empty Secret":             {func(d map[string][]byte) { clear(d) }, false, "ca.key: it is missing or empty", "new root"},
		"a key that is no PEM":        {func(d map[string][]byte) { d[entryServingKey] = []byte("oops") }, true, "tls.key: it is not the PEM", "new serving certificate"},
		"a certificate of nobody":     {func(d map[string][]byte) { d[entryServing] = other.data[entryServing] }, true, "", "its key belonged to another certificate"},
		"a pair of another authority": {func(d map[string][]byte) { copyEntries(d, other.data, entryServing, entryServingKey) }, true, "", "it was not to be trusted"},
		"the root's key lost":         {func(d map[string][]byte) { delete(d, entryRootKey) }, true, "ca.key: it is missing or empty", "there was none whose key is at hand"},
		"another root's key":          {func(d map[string][]byte) { copyEntries(d, other.data, entryRootKey) }, true, "", "there was none whose key is at hand"},
		"roots cut off":               {func(d map[string][]byte) { d[entryRoots] = d[entryRoots][:len(d[entryRoots])/2] }, false, "ca.crt: it is not the PEM", "new root"},
		"text after the roots":        {func(d map[string][]byte) { d[entryRoots] = append(slices.Clone(d[entryRoots]), "by hand"...) }, true, "ca.crt: it is not the PEM", ""},
		"a next key of nobody":        {func(d map[string][]byte) { d[entryNextKey] = []byte("x") }, true, "ca-next.key: it is not the PEM", ""},
		"a root that is none":         {func(d map[string][]byte) { d[entryRoots] = append(slices.Clone(d[entryRoots]), d[entryServing]...) }, true, "", "no longer trusted"},
		"the same root twice":         {func(d map[string][]byte) { d[entryRoots] = append(slices.Clone(d[entryRoots]), d[entryRoots]...) }, true, "", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newKept(t)
			bundle := s.data[entryRoots]
			s.data = maps.Clone(s.data)
			tt.damage(s.data)
			damaged := maps.Clone(s.data)
			_, faults := readKeyring(s.data)
			k, done := s.at(now)
			if !strings.Contains(strings.Join(faults, "; "), tt.faults) || !strings.Contains(strings.Join(done, "; "), tt.done) {
				t.Errorf("faults %v, done %v; want %q and %q in them", faults, done, tt.faults, tt.done)
			}
			if err := trusts(bundle, k, now); tt.trusted && err != nil {
				t.Errorf("clients of before are left behind: %v", err)
			}
			if err := trusts(s.data[entryRoots], k, now); err != nil {
				t.Error(err)
			}
			if same(damaged, s.data) {
				t.Error("the Secret would stay as it was")
			}
			repaired := s.data
			if _, done := s.at(now.Add(time.Second)); len(done) > 0 || !same(repaired, s.data) {
				t.Errorf("done again: %v", done)
			}
		})
	}
}

func copyEntries(to, from map[string][]byte, entries ...string) {
	for _, entry := range entries {
		to[entry] = from[entry]
	}
}

func TestOtherNamesAskForAnotherCertificate(t *testing.T) {
	t.Parallel()
	s := newKept(t)
	k, _ := readKeyring(s.data)
	done, err := k.tend(start, []string{"c.system.svc"})
	if err != nil || len(done) != 1 || !strings.Contains(done[0], "it was for the names [a.system.svc b.system.svc]") || k.serving.DNSNames[0] != "c.system.svc" {
		t.Errorf("done %v, %v", done, err)
	}
	k, _ = readKeyring(s.data)
	if done, _ := k.tend(start, []string{testNames[1], testNames[0]}); len(done) > 0 {
		t.Errorf("the order of names makes a difference: %v", done)
	}
}
