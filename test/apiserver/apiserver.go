// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

// Package apiserver runs a real Kubernetes API server with etcd behind it and the mesh's CustomResourceDefinitions in it, for tests.
// Tests alone call it; the programs are those that the lab builds.
package apiserver

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"k8s.io/client-go/rest"
)

// errNotBuilt says that the lab has not built the programs.
var errNotBuilt = errors.New("kube-apiserver and etcd are not built: run 'make lab' once")

// token is the administrator's, for as long as the server lives.
const token = "tulle-test-administrator"

// Server is a running API server. There is no scheduler, kubelet or controller manager: an object stays as it was written, and pods never run.
type Server struct {
	// Config is an administrator's. Impersonate with a copy of it to be somebody else; RBAC is in force.
	Config *rest.Config

	dir       string
	processes []*process
}

type process struct {
	cmd  *exec.Cmd
	log  *os.File
	done chan struct{}
}

// Start runs a server until Stop. It takes about five seconds.
func Start(ctx context.Context) (*Server, error) {
	etcd, apiServer, err := programs()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "tulle-apiserver-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	if err := s.start(ctx, etcd, apiServer); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// programs finds what the lab has built, the newest version where there are several.
func programs() (etcd, apiServer string, err error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return "", "", err
	}
	find := func(folder, name string) string {
		found, _ := filepath.Glob(filepath.Join(home, ".cache/tulle/lab/tools", folder, "*", name))
		if len(found) == 0 {
			return ""
		}
		return slices.Max(found)
	}
	etcd, apiServer = find("etcd", "etcd"), find("kubernetes", "kube-apiserver")
	if etcd == "" || apiServer == "" {
		return "", "", errNotBuilt
	}
	return etcd, apiServer, nil
}

func (s *Server) start(ctx context.Context, etcd, apiServer string) error {
	ports, err := freePorts(ctx, 3)
	if err != nil {
		return err
	}
	client, peer := "http://127.0.0.1:"+ports[0], "http://127.0.0.1:"+ports[1]
	err = s.run(etcd, "etcd",
		"--data-dir="+filepath.Join(s.dir, "etcd"), "--unsafe-no-fsync",
		"--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peer, "--initial-advertise-peer-urls="+peer, "--initial-cluster=default="+peer)
	if err != nil {
		return err
	}
	key, err := s.writeKey()
	if err != nil {
		return err
	}
	tokens := filepath.Join(s.dir, "tokens.csv")
	if err := os.WriteFile(tokens, []byte(token+",admin,admin,system:masters\n"), 0o600); err != nil {
		return err
	}
	certificates := filepath.Join(s.dir, "certificates")
	err = s.run(apiServer, "kube-apiserver",
		"--etcd-servers="+client, "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--secure-port="+ports[2], "--cert-dir="+certificates,
		"--token-auth-file="+tokens, "--authorization-mode=RBAC", "--allow-privileged=true",
		"--service-cluster-ip-range=10.96.0.0/16", "--disable-admission-plugins=ServiceAccount",
		"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
		"--api-audiences=https://kubernetes.default.svc,tulle", "--endpoint-reconciler-type=none", "--v=0")
	if err != nil {
		return err
	}
	s.Config = &rest.Config{
		Host: "https://127.0.0.1:" + ports[2], BearerToken: token, QPS: -1,
		TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(certificates, "apiserver.crt")},
	}
	if err := s.ready(ctx); err != nil {
		return err
	}
	return s.installDefinitions(ctx)
}

func freePorts(ctx context.Context, n int) ([]string, error) {
	var config net.ListenConfig
	ports := make([]string, 0, n)
	for range n {
		l, err := config.Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer func() { _ = l.Close() }() // only once all are known, so that they differ
		address, ok := l.Addr().(*net.TCPAddr)
		if !ok {
			return nil, fmt.Errorf("listening on %v, which is not TCP", l.Addr())
		}
		ports = append(ports, strconv.Itoa(address.Port))
	}
	return ports, nil
}

// writeKey makes the key that signs ServiceAccount tokens.
func (s *Server) writeKey() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", err
	}
	path := filepath.Join(s.dir, "service-account.key")
	return path, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), 0o600)
}

// run starts a program that Stop ends. What it says goes to a file, whose end is in the error if the server does not come up.
func (s *Server) run(path, name string, args ...string) error {
	log, err := os.Create(filepath.Join(s.dir, name+".log")) //nolint:gosec // in a folder of our own
	if err != nil {
		return err
	}
	cmd := exec.Command(path, args...) //nolint:gosec,noctx // the lab's own programs; Stop ends them, whatever becomes of the context that started them
	cmd.Stdout, cmd.Stderr, cmd.Dir = log, log, s.dir
	cmd.SysProcAttr = endWithParent()
	if err := cmd.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	s.processes = append(s.processes, p)
	go func() {
		_ = cmd.Wait() // how it ended is of interest only while waiting for it, and its log says that
		close(p.done)
	}()
	return nil
}

// ready waits for the API server to say that it is.
func (s *Server) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 90*time.Second)
	defer cancel()
	for {
		err := s.get(ctx, "/readyz")
		if err == nil {
			return nil
		}
		for _, p := range s.processes {
			select {
			case <-p.done:
				return fmt.Errorf("%s has ended: %s", filepath.Base(p.cmd.Path), s.logs())
			default:
			}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the API server did not come up: %w\n%s", err, s.logs())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (s *Server) get(ctx context.Context, path string) error {
	client, err := rest.HTTPClientFor(rest.CopyConfig(s.Config))
	if err != nil {
		return err // the certificate is not there yet
	}
	defer client.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Config.Host+path, http.NoBody)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", path, response.Status)
	}
	return nil
}

// logs is the end of what the programs have said.
func (s *Server) logs() string {
	var all bytes.Buffer
	for _, p := range s.processes {
		text, _ := os.ReadFile(p.log.Name())
		text = text[max(0, len(text)-2000):]
		fmt.Fprintf(&all, "--- %s\n%s\n", filepath.Base(p.cmd.Path), text)
	}
	return all.String()
}

// Stop ends the server and removes all that it held.
func (s *Server) Stop() error {
	var errs []error
	for _, p := range slices.Backward(s.processes) {
		_ = p.cmd.Process.Kill() // it may have ended already
		<-p.done
		errs = append(errs, p.log.Close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}
