// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

// refusalsPath is where a replica tells the leader what its proxies refuse.
const refusalsPath = "/debug/refusals"

// controllerPages are those of serve, and the one that the leader reads.
func controllerPages(cp *controlPlane) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("/", cp.status().handler())
	mux.HandleFunc("GET "+refusalsPath, func(w http.ResponseWriter, _ *http.Request) {
		list := cp.plane.Refusals(cp.xds.Proxies())
		if list == nil {
			list = []mesh.Finding{}
		}
		object(w, list)
	})
	return mux
}

func port(n uint16) string { return strconv.Itoa(int(n)) }

// certificateFolder is certificateFiles of tls.crt and tls.key.
func certificateFolder(dir string) *tls.Config {
	return certificateFiles(filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key"))
}

// certificateFiles serves what the files hold at the time of each handshake, so that a rotation needs no restart.
func certificateFiles(certificate, key string) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			pair, err := tls.LoadX509KeyPair(certificate, key)
			return &pair, err
		},
	}
}

// xdsService is the Service whose endpoints are the replicas.
const xdsService = "appmesh-controller-xds"

// peers are the other replicas, to which some of the proxies are connected.
type peers struct {
	reader          client.Reader
	namespace, self string
	port            string
	client          *http.Client
	logger          *slog.Logger
	// last is what each replica said last, by address. One that does not answer is taken at its last word while it exists.
	last map[string][]mesh.Finding
}

func newPeers(o controllerOptions, env Env, logger *slog.Logger) *peers {
	_, port, err := net.SplitHostPort(o.metrics)
	if err != nil {
		port = ""
	}
	return &peers{
		namespace: ownNamespace(env, o), self: ownName(env), port: port, logger: logger,
		client: &http.Client{Timeout: 2 * time.Second}, last: map[string][]mesh.Finding{},
	}
}

// refusals asks every other replica. One goroutine calls it at a time.
func (p *peers) refusals(ctx context.Context) []mesh.Finding {
	if p.port == "" {
		return nil
	}
	var slicesOf discoveryv1.EndpointSliceList
	err := p.reader.List(ctx, &slicesOf, client.InNamespace(p.namespace), client.MatchingLabels{discoveryv1.LabelServiceName: xdsService})
	if err != nil {
		p.logger.Debug("cannot list the other replicas", slog.Any("error", err))
		return nil
	}
	now := map[string][]mesh.Finding{}
	var all []mesh.Finding
	for i := range slicesOf.Items {
		for _, endpoint := range slicesOf.Items[i].Endpoints {
			if endpoint.TargetRef != nil && endpoint.TargetRef.Name == p.self {
				continue
			}
			for _, address := range endpoint.Addresses {
				list, err := p.ask(ctx, net.JoinHostPort(address, p.port))
				if err != nil {
					p.logger.Debug("a replica does not say what its proxies refuse", slog.String("address", address), slog.Any("error", err))
					list = p.last[address]
				}
				now[address] = list
				all = slices.Concat(all, list)
			}
		}
	}
	p.last = now
	return all
}

// mostAnswer is the most bytes that a replica's answer may have.
const mostAnswer = 16 << 20

func (p *peers) ask(ctx context.Context, address string) ([]mesh.Finding, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+refusalsPath, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := p.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", refusalsPath, response.Status)
	}
	var list []mesh.Finding
	err = json.NewDecoder(io.LimitReader(response.Body, mostAnswer)).Decode(&list)
	return list, err
}
