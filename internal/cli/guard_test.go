// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package cli_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/api/v1beta1"
	"github.com/tulle-mesh/tulle/api/v1beta2"
	"github.com/tulle-mesh/tulle/internal/agent/relay"
	"github.com/tulle-mesh/tulle/internal/cli"
	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/identity"
	"github.com/tulle-mesh/tulle/internal/inject"
	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/internal/kube/proxyauth"
	"github.com/tulle-mesh/tulle/test/apiserver"
)

// fortress is a controller that runs as the chart runs it: in a namespace of its own, as a user that may do what the packages' Rules say and nothing else,
// with its own certificates, and TLS for proxies.
type fortress struct {
	client.Client

	t          *testing.T
	server     *apiserver.Server
	system     string
	xds, pages string
	log        *lockedBuffer
	stop       func()
}

// newFortress starts a controller, in a cluster that is prepared where there is something to prepare.
func newFortress(t *testing.T, prepare func(*fortress)) *fortress {
	t.Helper()
	// An API server of its own: the webhook configurations that it tells whom to trust are the cluster's.
	s, err := apiserver.Start(context.WithoutCancel(t.Context()))
	if err != nil {
		server.Get(t) // skips where the programs are not there, and fails in CI
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	scheme, err := kube.Scheme()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(rbacv1.AddToScheme(scheme), admissionregistrationv1.AddToScheme(scheme), apiextensionsv1.AddToScheme(scheme), v1beta1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	c, err := client.New(s.Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	f := &fortress{Client: c, t: t, server: s, system: "appmesh-system", pages: freeAddress(t), log: &lockedBuffer{}}
	_, port, _ := net.SplitHostPort(freeAddress(t))
	f.xds = "127.0.0.1:" + port
	f.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: f.system}})
	f.webhooks()
	if prepare != nil {
		prepare(f)
	}
	f.start(f.restricted(), "0.0.0.0:"+port)
	return f
}

func (f *fortress) create(objects ...client.Object) {
	f.t.Helper()
	for _, o := range objects {
		if err := f.Create(f.t.Context(), o); err != nil {
			f.t.Fatal(err)
		}
	}
}

// webhooks are the chart's by name and label, for a kind that nobody has.
func (f *fortress) webhooks() {
	f.t.Helper()
	meta := metav1.ObjectMeta{Name: "appmesh-controller", Labels: map[string]string{"app.kubernetes.io/name": "appmesh-controller"}}
	call := admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: f.system, Name: "appmesh-controller-webhook-service"}}
	rules := []admissionregistrationv1.RuleWithOperations{{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{"test.tulle"}, APIVersions: []string{"v1"}, Resources: []string{"nothings"}},
	}}
	none := admissionregistrationv1.SideEffectClassNone
	f.create(&admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.MutatingWebhook{{
		Name: "m.test.tulle", ClientConfig: call, Rules: rules, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
	}}}, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta, Webhooks: []admissionregistrationv1.ValidatingWebhook{{
		Name: "v.test.tulle", ClientConfig: call, Rules: rules, SideEffects: &none, AdmissionReviewVersions: []string{"v1"},
	}}})
}

// restricted is the kubeconfig of a user who may do what the packages' Rules say together.
func (f *fortress) restricted() string {
	f.t.Helper()
	kubeCluster, kubeOwn := kube.Rules()
	identityCluster, identityOwn := identity.Rules()
	const name = "controller"
	user := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	inside := metav1.ObjectMeta{Name: name, Namespace: f.system}
	f.create(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: slices.Concat(kubeCluster, identityCluster, proxyauth.Rules(), inject.Rules())},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: user, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}},
		&rbacv1.Role{ObjectMeta: inside, Rules: slices.Concat(kubeOwn, identityOwn)},
		&rbacv1.RoleBinding{ObjectMeta: inside, Subjects: user, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}},
	)
	config := f.server.Config
	file := clientcmdapi.NewConfig()
	file.Clusters["c"] = &clientcmdapi.Cluster{Server: config.Host, CertificateAuthority: config.CAFile}
	file.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: config.BearerToken, Impersonate: name}
	file.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	file.CurrentContext = "x"
	path := filepath.Join(f.t.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*file, path); err != nil {
		f.t.Fatal(err)
	}
	return path
}

func (f *fortress) start(kubeconfig, xdsAddress string) {
	f.t.Helper()
	_, health, _ := net.SplitHostPort(freeAddress(f.t))
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	ended := make(chan int, 1)
	go func() {
		ended <- cli.Run(ctx, cli.Env{
			Stdin: strings.NewReader(""), Stdout: &bytes.Buffer{}, Stderr: f.log, Getenv: func(string) string { return "" }, Clock: clock.Real{},
		}, []string{
			"controller", "--kubeconfig", kubeconfig, "--namespace", f.system, "--enable-leader-election", "--xds-addr", xdsAddress, "--metrics-addr", f.pages,
			"--webhook-addr", "127.0.0.1:0", "--health-probe-port", health,
		})
	}()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if code := <-ended; code != 0 {
			f.t.Errorf("exit code %d", code)
		}
		if f.t.Failed() {
			f.t.Logf("the controller's log:\n%s", f.log)
		}
	})
	f.t.Cleanup(f.stop)
	until(f.t, "readiness", func() bool { return page(f.t, "http://"+f.pages+"/readyz") == "ok\n" })
}

func (f *fortress) secret() *corev1.Secret {
	f.t.Helper()
	secret := &corev1.Secret{}
	if err := f.Get(f.t.Context(), client.ObjectKey{Namespace: f.system, Name: "appmesh-controller-certs"}, secret); err != nil {
		f.t.Fatal(err)
	}
	return secret
}

// shop is a mesh of two nodes in a namespace, and a pod of the first.
func (f *fortress) shop() *corev1.Pod {
	f.t.Helper()
	node := func(name string) *v1beta2.VirtualNode {
		return &v1beta2.VirtualNode{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Spec: v1beta2.VirtualNodeSpec{
			PodSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": name}},
			Listeners:   []v1beta2.Listener{{PortMapping: v1beta2.PortMapping{Port: 8080, Protocol: "http"}}},
		}}
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "web-1", Labels: map[string]string{"app": "web"}}, Spec: corev1.PodSpec{
		ServiceAccountName: "app", Containers: []corev1.Container{{Name: "c", Image: "i"}},
	}}
	f.create(
		&v1beta2.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "m"}, Spec: v1beta2.MeshSpec{NamespaceSelector: &metav1.LabelSelector{}}},
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "app"}},
		node("web"), node("api"), pod,
	)
	return pod
}

// token writes the pod's token into a file, as a projected volume does.
func (f *fortress) token(pod *corev1.Pod) string {
	f.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: []string{"tulle"}, ExpirationSeconds: new(int64(3600)),
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: pod.Name, UID: pod.UID},
	}}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Spec.ServiceAccountName}}
	if err := f.SubResource("token").Create(f.t.Context(), account, request); err != nil {
		f.t.Fatal(err)
	}
	path := filepath.Join(f.t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(request.Status.Token), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// agent is a client behind a real relay that trusts bundle and shows a token.
func (f *fortress) agent(bundle []byte, token string) discoveryv3.AggregatedDiscoveryServiceClient {
	f.t.Helper()
	endpoints, err := relay.ParseEndpoints(f.xds)
	if err != nil {
		f.t.Fatal(err)
	}
	trust := relay.Trust{CA: string(bundle), ServerName: "appmesh-controller-xds." + f.system + ".svc", TokenFile: token}
	if err := trust.Check(endpoints); err != nil {
		f.t.Fatal(err)
	}
	socket := filepath.Join(f.t.TempDir(), "ads.sock")
	listener, err := new(net.ListenConfig).Listen(f.t.Context(), "unix", socket)
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(f.t.Context()))
	done := make(chan error, 1)
	r := relay.New(relay.Options{Endpoints: endpoints, Trust: trust, Log: slog.New(slog.DiscardHandler)})
	go func() { done <- r.Serve(ctx, listener) }()
	conn, err := grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		_ = conn.Close()
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("relay: %v", err)
		}
	})
	return discoveryv3.NewAggregatedDiscoveryServiceClient(conn)
}

type deltaStream = discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesClient

const listenerType = "type.googleapis.com/envoy.config.listener.v3.Listener"

// open asks for the listeners of a node, and returns once they have come, or the error with which the stream ended.
func (f *fortress) open(agent discoveryv3.AggregatedDiscoveryServiceClient, node string) (deltaStream, error) {
	f.t.Helper()
	s, err := agent.DeltaAggregatedResources(f.t.Context())
	if err != nil {
		return nil, err
	}
	if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{Node: &corev3.Node{Id: node}, TypeUrl: listenerType}); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	m, err := s.Recv()
	if err != nil {
		return nil, err
	}
	if len(m.GetResources()) == 0 {
		f.t.Errorf("no listeners for %s", node)
	}
	return s, nil
}

func TestTheControllerWithExactlyItsRulesServesProxiesThatProveThemselvesAndNoOthers(t *testing.T) {
	t.Parallel()
	f := newFortress(t, nil)
	pod := f.shop()
	bundle := f.secret().Data["ca.crt"]
	agent := f.agent(bundle, f.token(pod))
	s, err := f.open(agent, "mesh/m/virtualNode/web_shop")
	if err != nil {
		t.Fatalf("%v; the controller's log:\n%s", err, f.log)
	}
	for name, tt := range map[string]struct {
		node, token, want string
		code              codes.Code
	}{
		"another node":       {"mesh/m/virtualNode/api_shop", f.token(pod), "pod shop/web-1 may not be VirtualNode m/api_shop: it belongs to virtualnode/web", codes.PermissionDenied},
		"no token":           {"mesh/m/virtualNode/web_shop", "", "no token", codes.Unauthenticated},
		"a token of nothing": {"mesh/m/virtualNode/web_shop", f.file("a.b.c"), "does not accept the token", codes.Unauthenticated},
	} {
		if _, err := f.open(f.agent(bundle, tt.token), tt.node); status.Code(err) != tt.code || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v; want %v and %q", name, err, tt.code, tt.want)
		}
		until(t, name+": "+tt.want+" in the log", func() bool { return strings.Contains(f.log.String(), tt.want) })
	}
	for _, name := range []string{"proxies"} {
		if text := page(t, "http://"+f.pages+"/debug/"+name); !strings.Contains(text, `"identity": "pod shop/web-1"`) {
			t.Errorf("/debug/%s does not name the pod:\n%s", name, text)
		}
	}
	pod.Labels["app"] = "api"
	if err := f.Update(t.Context(), pod); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err = s.Recv(); err != nil {
			break
		}
	}
	if status.Code(err) != codes.PermissionDenied || !strings.Contains(err.Error(), "it belongs to virtualnode/api") {
		t.Errorf("the stream of a pod that left its node ended with %v", err)
	}
	if _, err := f.open(agent, "mesh/m/virtualNode/api_shop"); err != nil {
		t.Errorf("as the node that the pod belongs to now: %v", err)
	}
	f.told(bundle)
	f.stop()
	if text := f.log.String(); strings.Contains(text, "forbidden") {
		t.Errorf("the controller was forbidden something:\n%s", text)
	}
}

func (f *fortress) file(text string) string {
	f.t.Helper()
	path := filepath.Join(f.t.TempDir(), "token")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	return path
}

// told checks that the API server knows whom to trust.
func (f *fortress) told(bundle []byte) {
	f.t.Helper()
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}
	key := client.ObjectKey{Name: "appmesh-controller"}
	if err := errors.Join(f.Get(f.t.Context(), key, mutating), f.Get(f.t.Context(), key, validating)); err != nil {
		f.t.Fatal(err)
	}
	if !bytes.Equal(mutating.Webhooks[0].ClientConfig.CABundle, bundle) || !bytes.Equal(validating.Webhooks[0].ClientConfig.CABundle, bundle) {
		f.t.Error("the webhooks do not have the roots, though the controller is ready")
	}
}

func TestRotationUnderLoadCutsNoStreamAndFailsNoHandshake(t *testing.T) {
	t.Parallel()
	f := newFortress(t, nil)
	pod := f.shop()
	bundle, token := f.secret().Data["ca.crt"], f.token(pod)
	const node = "mesh/m/virtualNode/web_shop"
	agent := f.agent(bundle, token)
	var open []deltaStream
	for range 10 {
		s, err := f.open(agent, node)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, s)
	}
	// Others come and go all the time, each with a handshake of its own.
	var over atomic.Bool
	var load sync.WaitGroup
	handshakes := 0
	load.Go(func() {
		for !over.Load() {
			if s, err := f.open(agent, node); err != nil {
				t.Errorf("a stream that came during the rotation: %v", err)
			} else if err := s.CloseSend(); err != nil {
				t.Error(err)
			}
			handshakes++
		}
	})
	shown := map[string]bool{f.shown(bundle): true}
	for range 10 {
		secret := f.secret()
		delete(secret.Data, "tls.crt") // as if its time had come
		if err := f.Update(t.Context(), secret); err != nil {
			t.Fatal(err)
		}
		until(t, "another certificate", func() bool { return !shown[f.shown(bundle)] })
		shown[f.shown(bundle)] = true
	}
	over.Store(true)
	load.Wait()
	for n, s := range open {
		if err := s.Context().Err(); err != nil {
			t.Errorf("stream %d: %v", n, err)
		}
		// It still answers.
		if err := s.Send(&discoveryv3.DeltaDiscoveryRequest{TypeUrl: "type.googleapis.com/envoy.config.cluster.v3.Cluster"}); err != nil {
			t.Errorf("stream %d: %v", n, err)
		}
		if _, err := s.Recv(); err != nil {
			t.Errorf("stream %d ended: %v", n, err)
		}
	}
	if !bytes.Equal(f.secret().Data["ca.crt"], bundle) {
		t.Error("the roots have changed")
	}
	if handshakes < 10 {
		t.Errorf("only %d handshakes during the rotations: that is no load", handshakes)
	}
}

// shown is the serial number of the certificate that a new connection gets.
func (f *fortress) shown(bundle []byte) string {
	f.t.Helper()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	dialer := tls.Dialer{Config: &tls.Config{RootCAs: pool, ServerName: "appmesh-controller-xds." + f.system + ".svc", MinVersion: tls.VersionTLS13, NextProtos: []string{"h2"}}}
	c, err := dialer.DialContext(f.t.Context(), "tcp", f.xds)
	if err != nil {
		f.t.Fatalf("a handshake failed: %v", err)
	}
	defer func() { _ = c.Close() }()
	return c.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.String()
}

// storeOld stores a Mesh as the original controller's API server did, in v1beta1, and then installs our definition, whose conversion nobody answers yet.
func (f *fortress) storeOld() {
	f.t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "meshes.appmesh.k8s.aws"}}
	change := func(storage string, conversion *apiextensionsv1.CustomResourceConversion) {
		if err := f.Get(f.t.Context(), client.ObjectKeyFromObject(definition), definition); err != nil {
			f.t.Fatal(err)
		}
		for i := range definition.Spec.Versions {
			definition.Spec.Versions[i].Storage = definition.Spec.Versions[i].Name == storage
		}
		definition.Spec.Conversion = conversion
		if err := f.Update(f.t.Context(), definition); err != nil {
			f.t.Fatal(err)
		}
	}
	change("v1beta1", nil)
	old := &v1beta1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
	until(f.t, "an object in v1beta1", func() bool {
		// What is written just after the change may still be stored in v1beta2: only what was written last counts.
		if old.UID != "" {
			_ = f.Delete(f.t.Context(), old)
			old = &v1beta1.Mesh{ObjectMeta: metav1.ObjectMeta{Name: "old"}}
		}
		if err := f.Create(f.t.Context(), old); err != nil {
			return false
		}
		err := f.Get(f.t.Context(), client.ObjectKeyFromObject(definition), definition)
		return err == nil && slices.Contains(definition.Status.StoredVersions, "v1beta1")
	})
	change("v1beta2", &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
		ConversionReviewVersions: []string{"v1"},
		ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
			Namespace: f.system, Name: "appmesh-controller-webhook-service", Path: new("/convert"),
		}},
	}})
	until(f.t, "a cluster that cannot be read without us", func() bool {
		return f.List(f.t.Context(), &v1beta2.MeshList{}) != nil
	})
}

func TestAControllerIsReadyThoughTheClusterCannotBeReadBeforeItConverts(t *testing.T) {
	t.Parallel()
	f := newFortress(t, (*fortress).storeOld)
	if text := f.log.String(); !strings.Contains(text, "ready before the cluster is read") || strings.Contains(text, "msg=synced") {
		t.Errorf("the controller is ready for another reason; its log:\n%s", text)
	}
}
