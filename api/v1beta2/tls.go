// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package v1beta2

// ClientPolicy says how a proxy opens connections to backends.
type ClientPolicy struct {
	// TLS of the connections; without it they are plaintext.
	// +optional
	TLS *ClientPolicyTLS `json:"tls,omitempty"`
}

// ClientPolicyTLS holds the TLS settings of connections to backends.
type ClientPolicyTLS struct {
	// Enforce refuses backends that do not speak TLS; true when absent.
	// +optional
	Enforce *bool `json:"enforce,omitempty"`
	// Ports to which the policy is limited, each 1 to 65535; all ports when empty.
	// +optional
	Ports []PortNumber `json:"ports,omitempty"`
	// Validation of the server's certificate.
	Validation TLSValidationContext `json:"validation"`
	// Certificate that the client shows, for mutual TLS.
	// +optional
	Certificate *ClientTLSCertificate `json:"certificate,omitempty"`
}

// PortNumber is a TCP port.
// +kubebuilder:validation:Minimum=1
// +kubebuilder:validation:Maximum=65535
type PortNumber int64

// TLSValidationContext says how a peer's certificate is verified.
type TLSValidationContext struct {
	// Trust anchor that must have signed the certificate.
	Trust TLSValidationContextTrust `json:"trust"`
	// SubjectAlternativeNames that are accepted; any when absent.
	// +optional
	SubjectAlternativeNames *SubjectAlternativeNames `json:"subjectAlternativeNames,omitempty"`
}

// TLSValidationContextTrust is the trust anchor; set exactly one member.
type TLSValidationContextTrust struct {
	// ACM names certificate authorities of AWS Certificate Manager.
	// +optional
	ACM *TLSValidationContextACMTrust `json:"acm,omitempty"`
	// File is a bundle in the proxy's file system.
	// +optional
	File *TLSValidationContextFileTrust `json:"file,omitempty"`
	// SDS asks the secret discovery service of the proxy's node.
	// +optional
	SDS *TLSValidationContextSDSTrust `json:"sds,omitempty"`
}

// TLSValidationContextACMTrust trusts certificate authorities by ARN.
type TLSValidationContextACMTrust struct {
	// CertificateAuthorityARNs are the trusted authorities, one to three.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=3
	CertificateAuthorityARNs []string `json:"certificateAuthorityARNs"`
}

// TLSValidationContextFileTrust trusts the authorities in a file.
type TLSValidationContextFileTrust struct {
	// CertificateChain is the path of the PEM bundle in the proxy's file system.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	CertificateChain string `json:"certificateChain"`
}

// TLSValidationContextSDSTrust trusts what a secret discovery service delivers.
type TLSValidationContextSDSTrust struct {
	// SecretName of the validation context.
	SecretName string `json:"secretName"`
}

// SubjectAlternativeNames holds the names that a peer's certificate may carry.
type SubjectAlternativeNames struct {
	// Match lists them.
	Match SubjectAlternativeNameMatchers `json:"match"`
}

// SubjectAlternativeNameMatchers lists accepted names.
type SubjectAlternativeNameMatchers struct {
	// Exact names; one of them must be in the certificate.
	Exact []string `json:"exact"`
}

// ClientTLSCertificate is the certificate of a client; set exactly one member.
type ClientTLSCertificate struct {
	// File reads it from the proxy's file system.
	// +optional
	File *TLSFileCertificate `json:"file,omitempty"`
	// SDS asks the secret discovery service of the proxy's node.
	// +optional
	SDS *TLSSDSCertificate `json:"sds,omitempty"`
}

// TLSFileCertificate is a certificate and its key in files.
type TLSFileCertificate struct {
	// CertificateChain is the path of the PEM chain in the proxy's file system.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	CertificateChain string `json:"certificateChain"`
	// PrivateKey is the path of the PEM key in the proxy's file system.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=255
	PrivateKey string `json:"privateKey"`
}

// TLSSDSCertificate is a certificate from a secret discovery service.
type TLSSDSCertificate struct {
	// SecretName of the certificate, such as a SPIFFE id.
	SecretName string `json:"secretName"`
}

// TLSACMCertificate is a certificate of AWS Certificate Manager.
type TLSACMCertificate struct {
	// CertificateARN of the certificate.
	CertificateARN string `json:"certificateARN"`
}

// ListenerTLSMode says whether a listener takes TLS, plaintext or both.
// +kubebuilder:validation:Enum=DISABLED;PERMISSIVE;STRICT
type ListenerTLSMode string

// The modes of a listener's TLS.
const (
	ListenerTLSModeDisabled   ListenerTLSMode = "DISABLED"
	ListenerTLSModePermissive ListenerTLSMode = "PERMISSIVE"
	ListenerTLSModeStrict     ListenerTLSMode = "STRICT"
)

// ListenerTLSCertificate is the certificate of a listener; set exactly one member.
type ListenerTLSCertificate struct {
	// ACM names a certificate of AWS Certificate Manager.
	// +optional
	ACM *TLSACMCertificate `json:"acm,omitempty"`
	// File reads it from the proxy's file system.
	// +optional
	File *TLSFileCertificate `json:"file,omitempty"`
	// SDS asks the secret discovery service of the proxy's node.
	// +optional
	SDS *TLSSDSCertificate `json:"sds,omitempty"`
}
