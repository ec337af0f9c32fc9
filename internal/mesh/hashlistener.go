// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package mesh

func appendListener(e encoding, l *Listener) encoding {
	e = e.number(int64(l.PortMapping.Port)).text(string(l.PortMapping.Protocol))
	e = appendPointer(e, l.HealthCheck, appendHealthCheck)
	e = appendPointer(e, l.OutlierDetection, appendOutlierDetection)
	e = appendPointer(e, l.Timeout, func(e encoding, t *ListenerTimeout) encoding {
		e = appendPointer(e, t.HTTP, appendHTTPTimeout)
		e = appendPointer(e, t.HTTP2, appendHTTPTimeout)
		e = appendPointer(e, t.GRPC, appendHTTPTimeout)
		return appendPointer(e, t.TCP, appendTCPTimeout)
	})
	e = appendPointer(e, l.ConnectionPool, appendConnectionPool)
	return appendPointer(e, l.TLS, func(e encoding, t *ListenerTLS) encoding {
		e = appendCertificate(e.text(string(t.Mode)), &t.Certificate)
		return appendPointer(e, t.Validation, appendValidation)
	})
}

func appendConnectionPool(e encoding, c *ConnectionPool) encoding {
	e = appendPointer(e, c.HTTP, func(e encoding, p *HTTPConnectionPool) encoding {
		return e.number(int64(p.MaxConnections)).optionalNumber(p.MaxPendingRequests)
	})
	requests := func(e encoding, p *RequestConnectionPool) encoding { return e.number(int64(p.MaxRequests)) }
	e = appendPointer(appendPointer(e, c.HTTP2, requests), c.GRPC, requests)
	return appendPointer(e, c.TCP, func(e encoding, p *TCPConnectionPool) encoding { return e.number(int64(p.MaxConnections)) })
}

func appendCertificate(e encoding, c *TLSCertificate) encoding {
	e = appendPointer(e, c.ACM, func(e encoding, a *ACMCertificate) encoding { return e.text(a.CertificateARN) })
	e = appendPointer(e, c.File, func(e encoding, f *FileCertificate) encoding { return e.text(f.CertificateChain).text(f.PrivateKey) })
	return appendPointer(e, c.SDS, appendSDS)
}

func appendSDS(e encoding, s *SDSSecret) encoding { return e.text(s.SecretName) }

func appendValidation(e encoding, v *TLSValidation) encoding {
	e = appendPointer(e, v.Trust.ACM, func(e encoding, a *ACMTrust) encoding { return e.texts(a.CertificateAuthorityARNs) })
	e = appendPointer(e, v.Trust.File, func(e encoding, f *FileTrust) encoding { return e.text(f.CertificateChain) })
	e = appendPointer(e, v.Trust.SDS, appendSDS)
	return appendPointer(e, v.SubjectAlternativeNames, func(e encoding, s *SubjectAlternativeNames) encoding { return e.texts(s.Match.Exact) })
}

func appendClientPolicy(e encoding, p *ClientPolicy) encoding {
	return appendPointer(e, p.TLS, func(e encoding, t *ClientPolicyTLS) encoding {
		e = appendPointer(e, t.Enforce, func(e encoding, b *bool) encoding { return e.flag(*b) })
		e = appendList(e, t.Ports, func(e encoding, p *int32) encoding { return e.number(int64(*p)) })
		e = appendPointer(e, t.Certificate, appendCertificate)
		return appendValidation(e, &t.Validation)
	})
}

func appendLogging(e encoding, l *Logging) encoding {
	return appendPointer(e, l.AccessLog, func(e encoding, a *AccessLog) encoding {
		return appendPointer(e, a.File, func(e encoding, f *FileAccessLog) encoding {
			return appendPointer(e.text(f.Path), f.Format, func(e encoding, f *LoggingFormat) encoding {
				return appendList(e.text(f.Text), f.JSON, func(e encoding, j *JSONFormatRef) encoding { return e.text(j.Key).text(j.Value) })
			})
		})
	})
}
