// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"time"
)

// webhookName is the server's name in its certificate: that of its Service.
const webhookName = "webhook.smoke.svc"

// serveWebhook answers admission reviews with a patch that adds a sidecar. It prints the certificate to trust.
func serveWebhook(out io.Writer) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	now := time.Now() //nolint:forbidigo // a certificate is valid from some time on
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: webhookName}, DNSNames: []string{webhookName},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(24 * time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return err
	}
	if err := pem.Encode(out, &pem.Block{Type: "CERTIFICATE", Bytes: encoded}); err != nil {
		return err
	}
	server := &http.Server{
		Addr: ":8443", Handler: http.HandlerFunc(review), ReadHeaderTimeout: 10 * time.Second,
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{{Certificate: [][]byte{encoded}, PrivateKey: key}}},
	}
	return server.ListenAndServeTLS("", "")
}

type object = map[string]any

func review(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Request struct{ UID string }
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	patch, err := json.Marshal([]object{{"op": "add", "path": "/metadata/annotations", "value": object{"smoke": "reviewed"}}})
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	answer := object{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"response": object{"uid": asked.Request.UID, "allowed": true, "patchType": "JSONPatch", "patch": patch},
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(answer)
}

// intercept stands for a proxy: on its port every request, for whomever it was meant, is answered with a sentence of its own.
func intercept() error {
	listener, err := net.Listen("tcp", ":15001") //nolint:noctx,gosec // it listens as long as the container lives, and to all of it
	if err != nil {
		return err
	}
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer func() { _ = connection.Close() }()
			request, err := http.ReadRequest(bufio.NewReader(connection))
			if err != nil {
				return
			}
			text := "intercepted on the way to " + request.Host + "\n"
			_, _ = fmt.Fprintf(connection, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(text), text)
		}()
	}
}
