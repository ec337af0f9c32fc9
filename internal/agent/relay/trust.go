// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package relay

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"google.golang.org/grpc/metadata"
)

// Trust is how the relay knows the control plane, and proves to it which pod it runs in. The zero value is for plain text.
type Trust struct {
	// CA is the roots of the control plane's certificate: PEM text, or the path of a file of it, which is read for every connection. Where it is set, every TCP
	// connection is TLS.
	CA string
	// ServerName is the name in the control plane's certificate; empty for the endpoint's host.
	ServerName string
	// TokenFile holds the token that is sent over TLS; it is read for every stream. Empty for none.
	TokenFile string
}

// Check refuses endpoints to which plain text would leave the machine, and roots that cannot be used.
func (t Trust) Check(endpoints []Endpoint) error {
	if t.CA != "" {
		_, err := t.roots()
		return err
	}
	for _, e := range endpoints {
		if e.remote {
			return fmt.Errorf("endpoint %q: plain text goes to loopback addresses and unix sockets alone: "+
				"give the roots of the control plane's certificate with --xds-ca or TULLE_XDS_CA, or use 127.0.0.1:PORT, [::1]:PORT or unix:///PATH", e)
		}
	}
	if t.TokenFile != "" && len(endpoints) > 0 {
		return errors.New("a token is sent over TLS alone: give the roots of the control plane's certificate with --xds-ca or TULLE_XDS_CA, or take --xds-token-file away")
	}
	return nil
}

// pemMark is in every PEM text and in no path.
const pemMark = "-----BEGIN"

func (t Trust) roots() (*x509.CertPool, error) {
	text := []byte(t.CA)
	if !strings.Contains(t.CA, pemMark) {
		var err error
		if text, err = os.ReadFile(t.CA); err != nil {
			return nil, fmt.Errorf("roots of the control plane's certificate: %w", err)
		}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(text) {
		return nil, errors.New("roots of the control plane's certificate: there is no certificate in the PEM of --xds-ca or TULLE_XDS_CA")
	}
	return pool, nil
}

// secures says that connections to the endpoint are TLS.
func (t Trust) secures(e Endpoint) bool { return t.CA != "" && e.network == "tcp" }

// client is the configuration of one TLS connection to the endpoint.
func (t Trust) client(e Endpoint) (*tls.Config, error) {
	roots, err := t.roots()
	if err != nil {
		return nil, err
	}
	name := t.ServerName
	if name == "" {
		if name, _, err = net.SplitHostPort(e.address); err != nil {
			return nil, err
		}
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: name, NextProtos: []string{"h2"}}, nil
}

// prove adds the token of now to what is sent with a stream.
func (t Trust) prove(md metadata.MD) error {
	// Whatever Envoy sent is not what proves the pod.
	md.Delete("authorization")
	if t.TokenFile == "" {
		return nil
	}
	token, err := os.ReadFile(t.TokenFile)
	if err != nil {
		return fmt.Errorf("no token to show to the control plane: %w", err)
	}
	if token = bytes.TrimSpace(token); len(token) == 0 {
		return fmt.Errorf("no token to show to the control plane: %s is empty", t.TokenFile)
	}
	md.Set("authorization", "Bearer "+string(token))
	return nil
}

// explained adds to a failed handshake what may be the matter.
func explained(err error) error {
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return fmt.Errorf("%w: it is not the control plane that this proxy was started for, or its authority was made anew; restart the pod to get its roots", err)
	}
	return err
}
