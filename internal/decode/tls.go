// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package decode

import (
	"slices"

	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/mesh"
)

func listenerTLS(in *v1beta2.ListenerTLS) *mesh.ListenerTLS {
	if in == nil {
		return nil
	}
	out := &mesh.ListenerTLS{Mode: mesh.TLSMode(in.Mode), Certificate: listenerCertificate(in.Certificate)}
	if in.Validation != nil {
		out.Validation = new(validation(&v1beta2.TLSValidationContext{
			Trust: v1beta2.TLSValidationContextTrust{
				File: in.Validation.Trust.File,
				SDS:  in.Validation.Trust.SDS,
			},
			SubjectAlternativeNames: in.Validation.SubjectAlternativeNames,
		}))
	}
	return out
}

func listenerCertificate(in v1beta2.ListenerTLSCertificate) mesh.TLSCertificate {
	out := mesh.TLSCertificate{File: fileCertificate(in.File), SDS: sdsSecret(in.SDS)}
	if in.ACM != nil {
		out.ACM = &mesh.ACMCertificate{CertificateARN: in.ACM.CertificateARN}
	}
	return out
}

func fileCertificate(in *v1beta2.TLSFileCertificate) *mesh.FileCertificate {
	if in == nil {
		return nil
	}
	return &mesh.FileCertificate{CertificateChain: in.CertificateChain, PrivateKey: in.PrivateKey}
}

func sdsSecret(in *v1beta2.TLSSDSCertificate) *mesh.SDSSecret {
	if in == nil {
		return nil
	}
	return &mesh.SDSSecret{SecretName: in.SecretName}
}

func validation(in *v1beta2.TLSValidationContext) mesh.TLSValidation {
	var out mesh.TLSValidation
	if in.Trust.ACM != nil {
		out.Trust.ACM = &mesh.ACMTrust{CertificateAuthorityARNs: slices.Clone(in.Trust.ACM.CertificateAuthorityARNs)}
	}
	if in.Trust.File != nil {
		out.Trust.File = &mesh.FileTrust{CertificateChain: in.Trust.File.CertificateChain}
	}
	if in.Trust.SDS != nil {
		out.Trust.SDS = &mesh.SDSSecret{SecretName: in.Trust.SDS.SecretName}
	}
	if names := in.SubjectAlternativeNames; names != nil {
		out.SubjectAlternativeNames = &mesh.SubjectAlternativeNames{
			Match: mesh.SubjectAlternativeNameMatchers{Exact: slices.Clone(names.Match.Exact)},
		}
	}
	return out
}

func clientPolicy(in *v1beta2.ClientPolicy) *mesh.ClientPolicy {
	if in == nil {
		return nil
	}
	if in.TLS == nil {
		return &mesh.ClientPolicy{}
	}
	tls := &mesh.ClientPolicyTLS{
		Enforce:    copyPtr(in.TLS.Enforce),
		Validation: validation(&in.TLS.Validation),
	}
	for _, port := range in.TLS.Ports {
		tls.Ports = append(tls.Ports, int32Of(int64(port)))
	}
	if cert := in.TLS.Certificate; cert != nil {
		tls.Certificate = &mesh.TLSCertificate{File: fileCertificate(cert.File), SDS: sdsSecret(cert.SDS)}
	}
	return &mesh.ClientPolicy{TLS: tls}
}

func backendDefaults(in *v1beta2.BackendDefaults) *mesh.BackendDefaults {
	if in == nil {
		return nil
	}
	return &mesh.BackendDefaults{ClientPolicy: clientPolicy(in.ClientPolicy)}
}

func logging(in *v1beta2.Logging) *mesh.Logging {
	if in == nil {
		return nil
	}
	out := &mesh.Logging{}
	if in.AccessLog == nil {
		return out
	}
	out.AccessLog = &mesh.AccessLog{}
	file := in.AccessLog.File
	if file == nil {
		return out
	}
	out.AccessLog.File = &mesh.FileAccessLog{Path: file.Path}
	if format := file.Format; format != nil {
		out.AccessLog.File.Format = &mesh.LoggingFormat{Text: valueOf(format.Text)}
		for _, pair := range format.JSON {
			out.AccessLog.File.Format.JSON = append(out.AccessLog.File.Format.JSON, mesh.JSONFormatRef{Key: pair.Key, Value: pair.Value})
		}
	}
	return out
}

func serviceDiscovery(in *v1beta2.ServiceDiscovery) *mesh.ServiceDiscovery {
	if in == nil {
		return nil
	}
	out := &mesh.ServiceDiscovery{}
	if in.DNS != nil {
		out.DNS = &mesh.DNSServiceDiscovery{
			Hostname:     in.DNS.Hostname,
			ResponseType: mesh.DNSResponseType(valueOf(in.DNS.ResponseType)),
		}
	}
	if in.AWSCloudMap != nil {
		out.AWSCloudMap = &mesh.AWSCloudMapServiceDiscovery{
			NamespaceName: in.AWSCloudMap.NamespaceName,
			ServiceName:   in.AWSCloudMap.ServiceName,
		}
		for _, a := range in.AWSCloudMap.Attributes {
			out.AWSCloudMap.Attributes = append(out.AWSCloudMap.Attributes, mesh.CloudMapAttribute{Key: a.Key, Value: a.Value})
		}
	}
	return out
}
