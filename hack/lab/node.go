// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// nodeVerb starts this program as the first process of a cluster's namespaces. Only up does so.
const nodeVerb = "node"

// Listeners of the machine's network that up hands to the node's first process. A listener stays in the network that it was made in, so that
// process serves both.
const (
	apiListener      = 3
	registryListener = 4
)

// node is process 1 of the cluster: it makes the node and keeps its services. It ends only when killed, and everything ends with it.
func (l lab) node(ctx context.Context) error {
	if os.Getpid() != 1 {
		return errors.New("node is for up alone: it must be the first process of its namespaces")
	}
	if err := l.hold(); err != nil {
		return err
	}
	if err := l.enterRoot(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte(nodeName)); err != nil {
		return err
	}
	if err := setUpNetwork(ctx); err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	if err := serveListeners(log); err != nil {
		return err
	}
	k := &keeper{log: log, logs: l.in("logs"), running: map[int]service{}}
	for _, s := range []service{l.containerd(), l.etcd(), l.apiServer()} {
		if err := k.start(s); err != nil {
			return err
		}
	}
	if err := waitForAPIServer(ctx); err != nil {
		return err
	}
	for _, s := range []service{l.controllerManager(), l.scheduler(), l.kubelet(), l.proxy()} {
		if err := k.start(s); err != nil {
			return err
		}
	}
	<-ctx.Done()
	return nil
}

// serveListeners carries connections from the machine to the API server, and serves the registry to the machine and to the node.
func serveListeners(log *slog.Logger) error {
	api, err := net.FileListener(os.NewFile(apiListener, "api"))
	if err != nil {
		return fmt.Errorf("the listener for the API server: %w", err)
	}
	go forward(log, api, apiAddress)
	machine, err := net.FileListener(os.NewFile(registryListener, "registry"))
	if err != nil {
		return fmt.Errorf("the listener for the registry: %w", err)
	}
	node, err := net.Listen("tcp", registryAddress) //nolint:noctx // it listens as long as the node lives
	if err != nil {
		return err
	}
	if err := os.MkdirAll(registryFolder, 0o750); err != nil {
		return err
	}
	server := &http.Server{Handler: newRegistry(), ReadHeaderTimeout: time.Minute}
	for _, listener := range []net.Listener{machine, node} {
		go func() { log.Error("the registry ended", "error", server.Serve(listener)) }()
	}
	return nil
}

// forward carries every connection to an address of the node.
func forward(log *slog.Logger, listener net.Listener, address string) {
	for {
		client, err := listener.Accept()
		if err != nil {
			log.Error("connections from the machine end here", "address", address, "error", err)
			return
		}
		go func() {
			defer func() { _ = client.Close() }()
			server, err := net.Dial("tcp", address) //nolint:noctx // local: it answers or refuses at once
			if err != nil {
				return // the client sees its connection closed, and tries again while the API server starts
			}
			defer func() { _ = server.Close() }()
			done := make(chan struct{}, 2)
			for _, way := range [][2]net.Conn{{server, client}, {client, server}} {
				go func() {
					_, _ = io.Copy(way[0], way[1])
					if half, ok := way[0].(*net.TCPConn); ok {
						_ = half.CloseWrite()
					}
					done <- struct{}{}
				}()
			}
			<-done
			<-done
		}()
	}
}

// waitForAPIServer returns when the API server says that it is ready; whoever is started before would only be started again.
func waitForAPIServer(ctx context.Context) error {
	authorities := x509.NewCertPool()
	text, err := os.ReadFile("/etc/kubernetes/pki/ca.crt")
	if err != nil {
		return err
	}
	authorities.AppendCertsFromPEM(text)
	client := &http.Client{
		Timeout:   5 * time.Second,
		Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authorities, MinVersion: tls.VersionTLS13}},
	}
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+apiAddress+"/readyz", http.NoBody)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			_ = response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}
