// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// An authority signs the certificates of one cluster. All live as long as it does.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
	encoded     []byte
	serial      int64
}

// A pair is a certificate and its key, as PEM.
type pair struct{ certificate, key []byte }

// lifetime of the cluster's certificates.
const lifetime = 365 * 24 * time.Hour

func newAuthority(now time.Time) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "lab"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	if template, err = x509.ParseCertificate(encoded); err != nil {
		return nil, err
	}
	return &authority{certificate: template, key: key, encoded: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: encoded}), serial: 1}, nil
}

// issue makes a certificate for a user (name and group, as Kubernetes reads them) or a server of these names and addresses.
func (a *authority) issue(user, group string, servers ...string) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	a.serial++
	template := &x509.Certificate{
		SerialNumber: big.NewInt(a.serial), Subject: pkix.Name{CommonName: user}, NotBefore: a.certificate.NotBefore, NotAfter: a.certificate.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	if group != "" {
		template.Subject.Organization = []string{group}
	}
	for _, server := range servers {
		if ip := net.ParseIP(server); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, server)
		}
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	if err != nil {
		return pair{}, err
	}
	keyText, err := keyPEM(key)
	return pair{pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: encoded}), keyText}, err
}

func keyPEM(key *ecdsa.PrivateKey) ([]byte, error) {
	encoded, err := x509.MarshalECPrivateKey(key)
	return pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), err
}

// kubeconfig is a client's configuration with everything in it. JSON is YAML.
func (a *authority) kubeconfig(server string, client pair) ([]byte, error) {
	type object = map[string]any
	return json.MarshalIndent(object{
		"apiVersion":      "v1",
		"kind":            "Config",
		"clusters":        []object{{"name": "lab", "cluster": object{"server": server, "certificate-authority-data": a.encoded}}},
		"users":           []object{{"name": "lab", "user": object{"client-certificate-data": client.certificate, "client-key-data": client.key}}},
		"contexts":        []object{{"name": "lab", "context": object{"cluster": "lab", "user": "lab"}}},
		"current-context": "lab",
	}, "", "  ")
}

// writePKI fills the node's /etc/kubernetes with certificates and the components' client configurations, and returns the administrator's.
func writePKI(etc string, a *authority, apiServers []string) (pair, error) {
	files := map[string][]byte{"pki/ca.crt": a.encoded}
	var err error
	if files["pki/ca.key"], err = keyPEM(a.key); err != nil {
		return pair{}, err
	}
	for _, c := range []struct {
		file, user, group string
		servers           []string
	}{
		{file: "pki/apiserver", user: "kube-apiserver", servers: apiServers},
		{file: "pki/kubelet-server", user: nodeName, servers: []string{nodeName, nodeIP, nodeIP6}},
		{file: "pki/apiserver-kubelet", user: "kube-apiserver-kubelet", group: "system:masters"},
		{file: "pki/front-proxy", user: "front-proxy"},
		{file: "pki/service-account", user: "service-account"},
		{file: "controller-manager", user: "system:kube-controller-manager"},
		{file: "scheduler", user: "system:kube-scheduler"},
		{file: "proxy", user: "system:kube-proxy"},
		{file: "kubelet", user: "system:node:" + nodeName, group: "system:nodes"},
	} {
		made, err := a.issue(c.user, c.group, c.servers...)
		if err != nil {
			return pair{}, fmt.Errorf("certificate of %s: %w", c.user, err)
		}
		if filepath.Dir(c.file) == "pki" {
			files[c.file+".crt"], files[c.file+".key"] = made.certificate, made.key
		} else if files[c.file+".kubeconfig"], err = a.kubeconfig("https://127.0.0.1:6443", made); err != nil {
			return pair{}, err
		}
	}
	for name, content := range files {
		path := filepath.Join(etc, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			return pair{}, err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return pair{}, err
		}
	}
	return a.issue("lab-admin", "system:masters")
}
