// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

import (
	"reflect"
	"slices"
)

// Equal says whether two Views translate to the same configuration. Parts that Views share are told by their memory, so that it costs little where little differs.
func (v *View) Equal(o *View) bool {
	if v == nil || o == nil {
		return v == o
	}
	return v.Proxy == o.Proxy && v.Profile == o.Profile && v.Egress == o.Egress && v.IPPreference == o.IPPreference &&
		slices.EqualFunc(v.Listeners, o.Listeners, equal[Listener]) && samePointer(v.Logging, o.Logging) &&
		slices.EqualFunc(v.Services, o.Services, ServiceView.equal) && v.SameNodes(o)
}

// SameNodes says whether two Views lead to the same nodes, and so name the same endpoint sets.
func (v *View) SameNodes(o *View) bool { return slices.EqualFunc(v.Nodes, o.Nodes, NodeView.equal) }

func (s ServiceView) equal(o ServiceView) bool {
	return s.Name == o.Name && s.OwnPolicy == o.OwnPolicy && samePointer(s.ClientPolicy, o.ClientPolicy) && slices.Equal(s.Addresses, o.Addresses) &&
		(sameSlice(s.Ports, o.Ports) || len(s.Ports) == len(o.Ports) && reflect.DeepEqual(s.Ports, o.Ports))
}

func (n NodeView) equal(o NodeView) bool {
	return n.Name == o.Name && n.Discovery == o.Discovery && (sameSlice(n.Listeners, o.Listeners) || slices.EqualFunc(n.Listeners, o.Listeners, equal[NodeListenerView]))
}

// equal says whether two values hold the same, which is quick for those that point to the same parts.
func equal[E comparable](x, y E) bool { return x == y || reflect.DeepEqual(x, y) }

func samePointer[E any](x, y *E) bool { return x == y || reflect.DeepEqual(x, y) }

// sameSlice says whether two slices are the same memory.
func sameSlice[E any](x, y []E) bool {
	return len(x) == len(y) && (len(x) == 0 || &x[0] == &y[0])
}

// equal says whether two policies ask for the same; nil asks for nothing, as an empty policy does.
func (p *ClientPolicy) equal(o *ClientPolicy) bool {
	a, b := p.tls(), o.tls()
	if a == nil || b == nil {
		return a == b
	}
	return sameValue(a.Enforce, b.Enforce) && slices.Equal(a.Ports, b.Ports) && a.Certificate.equal(b.Certificate) && a.Validation.equal(&b.Validation)
}

func (p *ClientPolicy) tls() *ClientPolicyTLS {
	if p == nil {
		return nil
	}
	return p.TLS
}

func (c *TLSCertificate) equal(o *TLSCertificate) bool {
	if c == nil || o == nil {
		return c == o
	}
	return sameValue(c.ACM, o.ACM) && sameValue(c.File, o.File) && sameValue(c.SDS, o.SDS)
}

func (v *TLSValidation) equal(o *TLSValidation) bool {
	authorities := func(t *ACMTrust) []string { return t.CertificateAuthorityARNs }
	names := func(s *SubjectAlternativeNames) []string { return s.Match.Exact }
	return sameList(v.Trust.ACM, o.Trust.ACM, authorities) && sameValue(v.Trust.File, o.Trust.File) && sameValue(v.Trust.SDS, o.Trust.SDS) &&
		sameList(v.SubjectAlternativeNames, o.SubjectAlternativeNames, names)
}

// sameValue says whether both are nil or point to equal values.
func sameValue[T comparable](x, y *T) bool { return x == y || x != nil && y != nil && *x == *y }

// sameList says whether both are nil or hold equal lists.
func sameList[T any](x, y *T, list func(*T) []string) bool {
	return x == y || x != nil && y != nil && slices.Equal(list(x), list(y))
}
