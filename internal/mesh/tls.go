// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

// ListenerTLS ends TLS at a listener. Source: App Mesh API, ListenerTls.
type ListenerTLS struct {
	Mode        TLSMode        `json:"mode"`
	Certificate TLSCertificate `json:"certificate"`
	// Validation asks clients for a certificate; nil asks for none.
	Validation *TLSValidation `json:"validation,omitempty"`
}

// TLSMode says what a listener takes.
type TLSMode string

// The modes of the App Mesh API: TLS alone, both, plaintext alone.
const (
	TLSStrict     TLSMode = "STRICT"
	TLSPermissive TLSMode = "PERMISSIVE"
	TLSDisabled   TLSMode = "DISABLED"
)

// TLSCertificate is a union of which exactly one member is set; a client's certificate has no acm.
type TLSCertificate struct {
	ACM  *ACMCertificate  `json:"acm,omitempty"`
	File *FileCertificate `json:"file,omitempty"`
	SDS  *SDSSecret       `json:"sds,omitempty"`
}

// ACMCertificate names a certificate as AWS Certificate Manager did; Tulle maps the ARN to a Secret.
type ACMCertificate struct {
	CertificateARN string `json:"certificateArn"`
}

// FileCertificate names files beside the proxy, 1 to 255 characters each.
type FileCertificate struct {
	CertificateChain string `json:"certificateChain"`
	PrivateKey       string `json:"privateKey"`
}

// SDSSecret names a secret that the proxy's local SDS server holds.
type SDSSecret struct {
	SecretName string `json:"secretName"`
}

// TLSValidation says which peer certificates are taken.
type TLSValidation struct {
	Trust                   TLSTrust                 `json:"trust"`
	SubjectAlternativeNames *SubjectAlternativeNames `json:"subjectAlternativeNames,omitempty"`
}

// TLSTrust is a union of which exactly one member is set; a listener has no acm.
type TLSTrust struct {
	ACM  *ACMTrust  `json:"acm,omitempty"`
	File *FileTrust `json:"file,omitempty"`
	SDS  *SDSSecret `json:"sds,omitempty"`
}

// ACMTrust names 1 to 3 certificate authorities by ARN.
type ACMTrust struct {
	CertificateAuthorityARNs []string `json:"certificateAuthorityArns"`
}

// FileTrust names a file of authorities beside the proxy, 1 to 255 characters.
type FileTrust struct {
	CertificateChain string `json:"certificateChain"`
}

// SubjectAlternativeNames are the names of which a peer's certificate must carry one.
type SubjectAlternativeNames struct {
	Match SubjectAlternativeNameMatchers `json:"match"`
}

// SubjectAlternativeNameMatchers holds exact names, 1 to 254 characters each.
type SubjectAlternativeNameMatchers struct {
	Exact []string `json:"exact"`
}

// ClientPolicy says how a proxy opens connections to a backend.
type ClientPolicy struct {
	TLS *ClientPolicyTLS `json:"tls,omitempty"`
}

// ClientPolicyTLS says how a proxy speaks TLS to a backend. Source: App Mesh API, ClientPolicyTls.
type ClientPolicyTLS struct {
	// Enforce refuses plaintext; nil is true.
	Enforce *bool `json:"enforce,omitempty"`
	// Ports limits the policy to these ports of the backend; none means all.
	Ports       []int32         `json:"ports,omitempty"`
	Certificate *TLSCertificate `json:"certificate,omitempty"`
	Validation  TLSValidation   `json:"validation"`
}

// Enforced says whether plaintext is refused; the API's default is yes.
func (p *ClientPolicyTLS) Enforced() bool { return p != nil && (p.Enforce == nil || *p.Enforce) }
