// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

func (c *checker) listenerTLS(field string, t *ListenerTLS) {
	if t == nil {
		return
	}
	oneOf(c, field+".mode", t.Mode, TLSStrict, TLSPermissive, TLSDisabled)
	c.certificate(field+".certificate", &t.Certificate, true)
	if t.Validation != nil {
		c.validation(field+".validation", t.Validation, false)
	}
}

func (c *checker) clientPolicy(field string, p *ClientPolicy) {
	if p == nil || p.TLS == nil {
		return
	}
	field += ".tls"
	for i, port := range p.TLS.Ports {
		c.port(at(field+".ports", i), port)
	}
	if p.TLS.Certificate != nil {
		c.certificate(field+".certificate", p.TLS.Certificate, false)
	}
	c.validation(field+".validation", &p.TLS.Validation, true)
}

// certificate checks a certificate; acm is for a listener's alone.
func (c *checker) certificate(field string, cert *TLSCertificate, acm bool) {
	members := []member{{"file", cert.File != nil}, {"sds", cert.SDS != nil}}
	if acm {
		members = append(members, member{"acm", cert.ACM != nil})
	} else if cert.ACM != nil {
		c.fault(field+".acm", cert.ACM.CertificateARN, "is not allowed for a client's certificate", "use file or sds")
	}
	c.union(field, members...)
	if cert.File != nil {
		c.text(field+".file.certificateChain", cert.File.CertificateChain, 255)
		c.text(field+".file.privateKey", cert.File.PrivateKey, 255)
	}
	c.secret(field+".sds", cert.SDS)
	if cert.ACM != nil {
		c.present(field+".acm.certificateArn", cert.ACM.CertificateARN)
	}
}

func (c *checker) secret(field string, s *SDSSecret) {
	if s != nil {
		c.present(field+".secretName", s.SecretName)
	}
}

// validation checks which peers are taken; acm is for a client's trust alone.
func (c *checker) validation(field string, v *TLSValidation, acm bool) {
	trust := field + ".trust"
	members := []member{{"file", v.Trust.File != nil}, {"sds", v.Trust.SDS != nil}}
	if acm {
		members = append(members, member{"acm", v.Trust.ACM != nil})
	} else if v.Trust.ACM != nil {
		c.fault(trust+".acm", "", "is not allowed for a listener's trust", "use file or sds")
	}
	c.union(trust, members...)
	if v.Trust.File != nil {
		c.text(trust+".file.certificateChain", v.Trust.File.CertificateChain, 255)
	}
	c.secret(trust+".sds", v.Trust.SDS)
	if v.Trust.ACM != nil {
		arns := v.Trust.ACM.CertificateAuthorityARNs
		if len(arns) == 0 {
			c.fault(trust+".acm.certificateAuthorityArns", "", "is empty", "name 1 to 3 authorities")
		}
		c.atMost(trust+".acm.certificateAuthorityArns", len(arns), 3)
		for i, arn := range arns {
			c.present(at(trust+".acm.certificateAuthorityArns", i), arn)
		}
	}
	if v.SubjectAlternativeNames != nil {
		for i, name := range v.SubjectAlternativeNames.Match.Exact {
			c.text(at(field+".subjectAlternativeNames.match.exact", i), name, 254)
		}
	}
}
