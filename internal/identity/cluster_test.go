// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package identity_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/identity"
	"github.com/tulle-mesh/tulle/internal/kube"
	"github.com/tulle-mesh/tulle/test/apiserver"
)

var server apiserver.Shared

func TestMain(m *testing.M) {
	kube.LogTo(slog.New(slog.DiscardHandler))
	os.Exit(server.Main(m))
}

// installation is a namespace of a real cluster with what a chart puts there, all of whose names are the test's own.
type installation struct {
	client.Client

	t       *testing.T
	options identity.Options
	clock   *clock.Fake
	log     *lockedLog
}

// lockedLog is a log that many goroutines write.
type lockedLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lockedLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *lockedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func install(t *testing.T, namespace string) *installation {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, appsv1.AddToScheme, admissionregistrationv1.AddToScheme, apiextensionsv1.AddToScheme, rbacv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	c, err := client.New(server.Get(t).Config, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	in := &installation{Client: c, t: t, clock: clock.NewFake(time.Now()), log: &lockedLog{}} //nolint:forbidigo // a real server keeps real time
	in.options = identity.ForController(namespace, "cluster.local")
	in.options.MutatingWebhooks, in.options.ValidatingWebhooks, in.options.Definitions = []string{namespace}, []string{namespace}, []string{namespace + "s.test.tulle"}
	in.options.Config, in.options.Clock, in.options.Logger = server.Get(t).Config, in.clock, slog.New(slog.NewTextHandler(in.log, nil))
	in.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}})
	return in
}

func (in *installation) create(objects ...client.Object) {
	in.t.Helper()
	for _, o := range objects {
		if err := in.Create(in.t.Context(), o); err != nil {
			in.t.Fatal(err)
		}
	}
}

// deployment is what the Secret goes with.
func (in *installation) deployment() *appsv1.Deployment {
	labels := map[string]string{"app": "x"}
	return &appsv1.Deployment{ObjectMeta: in.meta(in.options.Owner), Spec: appsv1.DeploymentSpec{
		Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		},
	}}
}

func (in *installation) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: in.options.Namespace, Name: name}
}

// run starts a replica and waits for its certificate.
func (in *installation) run(change func(*identity.Options)) (replica *identity.Identity, stop func()) {
	in.t.Helper()
	o := in.options
	if change != nil {
		change(&o)
	}
	replica, err := identity.New(o)
	if err != nil {
		in.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(in.t.Context()))
	done := make(chan error, 1)
	go func() { done <- replica.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			in.t.Errorf("the identity ended: %v", err)
		}
	})
	in.t.Cleanup(stop)
	select {
	case <-replica.Ready():
	case <-time.After(time.Minute):
		in.t.Fatalf("no certificate; the log:\n%s", in.log)
	}
	return replica, stop
}

func (in *installation) secret() *corev1.Secret {
	in.t.Helper()
	secret := &corev1.Secret{ObjectMeta: in.meta(in.options.Secret)}
	if err := in.Get(in.t.Context(), client.ObjectKeyFromObject(secret), secret); err != nil {
		in.t.Fatal(err)
	}
	return secret
}

func (in *installation) eventually(what string, holds func() bool) {
	in.t.Helper()
	for range 600 {
		if holds() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	in.t.Fatalf("%s did not come about; the log:\n%s", what, in.log)
}

// shown is the certificate that a server with the replica's configuration shows to a client that trusts bundle.
func (in *installation) shown(replica *identity.Identity, bundle []byte, name string) (*x509.Certificate, error) {
	in.t.Helper()
	a, b := net.Pipe()
	defer func() { _, _ = a.Close(), b.Close() }()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(bundle)
	go func() { _ = tls.Server(a, replica.TLSConfig()).HandshakeContext(in.t.Context()) }()
	c := tls.Client(b, &tls.Config{RootCAs: pool, ServerName: name, MinVersion: tls.VersionTLS13, Time: in.clock.Now})
	if err := c.HandshakeContext(in.t.Context()); err != nil {
		return nil, err
	}
	return c.ConnectionState().PeerCertificates[0], nil
}

func TestAReplicaWhoseDeploymentIsGoneMakesNothingWhileItWaits(t *testing.T) {
	t.Parallel()
	in := install(t, "gone")
	in.options.Await = time.Hour
	replica, err := identity.New(in.options)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan error, 1)
	go func() { done <- replica.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	in.eventually("the wait", func() bool { return in.clock.Waiting() > 0 })
	in.clock.Advance(time.Minute)
	in.eventually("the wait after another look", func() bool { return in.clock.Waiting() > 0 })
	secret := &corev1.Secret{ObjectMeta: in.meta(in.options.Secret)}
	if err := in.Get(t.Context(), client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
		t.Fatalf("a Secret that nobody owns: %v", err)
	}
	in.create(in.deployment())
	in.clock.Advance(time.Minute)
	in.eventually("the certificate", func() bool {
		select {
		case <-replica.Ready():
			return true
		default:
			return false
		}
	})
	if owners := in.secret().OwnerReferences; len(owners) != 1 {
		t.Errorf("owners %v; want the Deployment", owners)
	}
}

func TestTheSecretIsMadeOwnedAndServed(t *testing.T) {
	t.Parallel()
	in := install(t, "made")
	deployment := in.deployment()
	in.create(deployment)
	replica, _ := in.run(nil)
	secret := in.secret()
	if len(secret.OwnerReferences) != 1 || secret.OwnerReferences[0].UID != deployment.UID {
		t.Errorf("owners %v; want the Deployment", secret.OwnerReferences)
	}
	if !bytes.Equal(replica.CABundle(), secret.Data["ca.crt"]) {
		t.Error("the bundle is not the Secret's")
	}
	for _, service := range []string{"appmesh-controller-xds", "appmesh-controller-webhook-service"} {
		for _, suffix := range []string{".made", ".made.svc", ".made.svc.cluster.local"} {
			if _, err := in.shown(replica, replica.CABundle(), service+suffix); err != nil {
				t.Errorf("as %s: %v", service+suffix, err)
			}
		}
	}
	if _, err := in.shown(replica, replica.CABundle(), "appmesh-controller-xds.other.svc"); err == nil {
		t.Error("the certificate is good for a Service of another namespace")
	}
}

func TestReplicasThatStartAtOnceAgree(t *testing.T) {
	t.Parallel()
	in := install(t, "agree")
	replicas := make([]*identity.Identity, 4)
	var group sync.WaitGroup
	for n := range replicas {
		group.Go(func() { replicas[n], _ = in.run(nil) })
	}
	group.Wait()
	for n, replica := range replicas {
		if !bytes.Equal(replica.CABundle(), in.secret().Data["ca.crt"]) {
			t.Errorf("replica %d has another bundle than the Secret", n)
		}
		if _, err := in.shown(replica, in.secret().Data["ca.crt"], in.options.Names[0]); err != nil {
			t.Errorf("replica %d: %v", n, err)
		}
	}
}

func TestACertificateThatExpiredWhileNothingRanIsNewBeforeItIsServed(t *testing.T) {
	t.Parallel()
	in := install(t, "expired")
	first, stop := in.run(nil)
	bundle := first.CABundle()
	stop()
	in.clock.Advance(200 * 24 * time.Hour)
	second, _ := in.run(nil)
	shown, err := in.shown(second, bundle, in.options.Names[0])
	if err != nil || !in.clock.Now().Before(shown.NotAfter) {
		t.Errorf("a client that has the bundle of before: %v", err)
	}
}

func TestARunningReplicaRenewsAndRepairsWithoutRestart(t *testing.T) {
	t.Parallel()
	in := install(t, "renew")
	replica, _ := in.run(nil)
	bundle := replica.CABundle()
	first, err := in.shown(replica, bundle, in.options.Names[0])
	if err != nil {
		t.Fatal(err)
	}
	in.eventually("a renewal", func() bool {
		in.clock.Advance(24 * time.Hour)
		now, err := in.shown(replica, bundle, in.options.Names[0])
		if err != nil {
			t.Fatalf("a handshake failed: %v", err)
		}
		return !now.Equal(first)
	})

	secret := in.secret()
	secret.Data["tls.key"] = []byte("by hand")
	if err := in.Update(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	in.eventually("a repair of the certificate", func() bool { return !bytes.Equal(in.secret().Data["tls.key"], []byte("by hand")) })
	if text := in.log.String(); !strings.Contains(text, "what it held was damaged") || !strings.Contains(text, "tls.key: it is not the PEM") {
		t.Errorf("the log does not say what was wrong:\n%s", text)
	}

	for _, lose := range []func() error{
		func() error { return in.Delete(t.Context(), in.secret()) },
		func() error {
			empty := in.secret()
			empty.Data = nil
			return in.Update(t.Context(), empty)
		},
	} {
		if err := lose(); err != nil {
			t.Fatal(err)
		}
		in.eventually("the Secret with the roots of before", func() bool {
			again := &corev1.Secret{ObjectMeta: in.meta(in.options.Secret)}
			return in.Get(t.Context(), client.ObjectKeyFromObject(again), again) == nil && bytes.Equal(again.Data["ca.crt"], bundle)
		})
	}
}

func TestAControlPlaneThatIsRemovedDoesNotMakeItsSecretAgain(t *testing.T) {
	t.Parallel()
	in := install(t, "removed")
	deployment := in.deployment()
	in.create(deployment)
	replica, _ := in.run(nil)
	// The watch tells the replica of the first of these; what it then does is seen by the Secret that follows.
	if err := in.Delete(t.Context(), deployment); err != nil {
		t.Fatal(err)
	}
	if err := in.Delete(t.Context(), in.secret()); err != nil {
		t.Fatal(err)
	}
	marker := &corev1.Secret{ObjectMeta: in.meta(in.options.Secret), Data: map[string][]byte{"mine": []byte("x")}}
	in.eventually("a Secret of the test's own, which fails where there is one", func() bool {
		time.Sleep(300 * time.Millisecond)
		return in.Create(t.Context(), marker) == nil
	})
	if _, err := in.shown(replica, replica.CABundle(), in.options.Names[0]); err != nil {
		t.Errorf("the certificate is no longer served: %v", err)
	}
}

// restricted is the configuration of a user who may do what the rules say, and nothing else.
func (in *installation) restricted() *rest.Config {
	in.t.Helper()
	name := "identity-" + in.options.Namespace
	everywhere, own := in.options.Rules()
	user := []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: name}}
	in.create(
		&rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: everywhere},
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name}, Subjects: user, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name}},
		&rbacv1.Role{ObjectMeta: in.meta(name), Rules: own},
		&rbacv1.RoleBinding{ObjectMeta: in.meta(name), Subjects: user, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}},
	)
	config := rest.CopyConfig(server.Get(in.t).Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: name}
	return config
}

// webhooks are two configurations, each with a webhook that calls the Service and one that calls another.
func (in *installation) webhooks(label string) (*admissionregistrationv1.MutatingWebhookConfiguration, *admissionregistrationv1.ValidatingWebhookConfiguration) {
	meta := metav1.ObjectMeta{Name: in.options.Namespace, Labels: map[string]string{"app.kubernetes.io/name": label}}
	none := admissionregistrationv1.SideEffectClassNone
	config := func(service string) admissionregistrationv1.WebhookClientConfig {
		return admissionregistrationv1.WebhookClientConfig{Service: &admissionregistrationv1.ServiceReference{Namespace: in.options.Namespace, Name: service}}
	}
	mutating, validating := &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: meta}, &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: meta}
	for _, service := range []string{in.options.Service, "another"} {
		name := service + ".test.tulle"
		mutating.Webhooks = append(mutating.Webhooks, admissionregistrationv1.MutatingWebhook{Name: name, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, ClientConfig: config(service)})
		validating.Webhooks = append(validating.Webhooks, admissionregistrationv1.ValidatingWebhook{Name: name, SideEffects: &none, AdmissionReviewVersions: []string{"v1"}, ClientConfig: config(service)})
	}
	return mutating, validating
}

// definition converts through the Service of another namespace, as one that was just installed.
func (in *installation) definition() *apiextensionsv1.CustomResourceDefinition {
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object"}}
	plural := in.options.Namespace + "s"
	return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: plural + ".test.tulle"}, Spec: apiextensionsv1.CustomResourceDefinitionSpec{
		Group: "test.tulle", Scope: apiextensionsv1.ClusterScoped, Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Singular: in.options.Namespace, Kind: "K" + in.options.Namespace},
		Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1", Served: true, Storage: true, Schema: schema}, {Name: "v2", Served: true, Schema: schema}},
		Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
			ConversionReviewVersions: []string{"v1"},
			ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{
				Namespace: "elsewhere", Name: in.options.Service, Path: new("/convert"),
			}},
		}},
	}}
}

// refresh reads objects again.
func (in *installation) refresh(objects ...client.Object) {
	in.t.Helper()
	for _, o := range objects {
		if err := in.Get(in.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
			in.t.Fatal(err)
		}
	}
}

func TestTheAPIServerIsToldWhomToTrustAndKeptSoWithinItsRules(t *testing.T) {
	t.Parallel()
	in := install(t, "told")
	mutating, validating := in.webhooks(in.options.App)
	crd := in.definition()
	in.create(in.deployment(), mutating)
	config := in.restricted()
	var replicas []*identity.Identity
	for range 2 {
		replica, _ := in.run(func(o *identity.Options) { o.Config = config })
		replicas = append(replicas, replica)
	}
	bundle := replicas[0].CABundle()
	in.create(validating, crd) // these come later
	in.eventually("the bundle in all three", func() bool {
		in.refresh(mutating, validating, crd)
		return bytes.Equal(mutating.Webhooks[0].ClientConfig.CABundle, bundle) && bytes.Equal(validating.Webhooks[0].ClientConfig.CABundle, bundle) &&
			bytes.Equal(crd.Spec.Conversion.Webhook.ClientConfig.CABundle, bundle)
	})
	if got := crd.Spec.Conversion.Webhook.ClientConfig.Service.Namespace; got != in.options.Namespace {
		t.Errorf("conversion goes to namespace %s", got)
	}
	if len(mutating.Webhooks[1].ClientConfig.CABundle)+len(validating.Webhooks[1].ClientConfig.CABundle) > 0 {
		t.Error("a webhook that calls another Service was changed")
	}
	in.eventually("nothing pending", func() bool { return len(replicas[0].Pending())+len(replicas[1].Pending()) == 0 })

	// Somebody else overwrites the bundle: the first time it is put back at once, then not before some time has passed.
	overwrite := func() string {
		in.refresh(mutating)
		mutating.Webhooks[0].ClientConfig.CABundle = nil
		if err := in.Update(t.Context(), mutating); err != nil {
			t.Fatal(err)
		}
		return mutating.ResourceVersion
	}
	back := func() bool {
		in.refresh(mutating)
		return bytes.Equal(mutating.Webhooks[0].ClientConfig.CABundle, bundle)
	}
	for range 5 {
		overwrite()
		in.eventually("the bundle put back", func() bool {
			in.clock.Advance(time.Second)
			return back()
		})
	}
	written := overwrite()
	in.eventually("a replica that knows of it", func() bool { return len(replicas[0].Pending()) > 0 || len(replicas[1].Pending()) > 0 })
	time.Sleep(500 * time.Millisecond) // the clock of the replicas stands still
	if in.refresh(mutating); mutating.ResourceVersion != written {
		t.Error("the bundle was put back at once for the sixth time: that is a write war")
	}
	in.eventually("the bundle put back", func() bool {
		in.clock.Advance(10 * time.Second)
		return back()
	})
	if text := in.log.String(); strings.Contains(text, "forbidden") || !strings.Contains(text, "somebody else overwrote") {
		t.Errorf("the log:\n%s", text)
	}
}

func TestWhatIsSomebodyElsesIsLeftAlone(t *testing.T) {
	t.Parallel()
	in := install(t, "foreign")
	in.create(&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "elsewhere"}}, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "elsewhere", Name: in.options.Service}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 443}}},
	})
	mutating, validating := in.webhooks("somebody")
	validating.Labels = map[string]string{"app.kubernetes.io/name": in.options.App}
	validating.Annotations = map[string]string{"cert-manager.io/inject-ca-from": "foreign/certificate"}
	crd := in.definition()
	crd.Spec.Conversion.Webhook.ClientConfig.CABundle = in.somePEM()
	in.create(mutating, validating, crd)
	replica, _ := in.run(nil)
	in.eventually("two complaints", func() bool {
		return fmt.Sprint(replica.Pending()) == "[MutatingWebhookConfiguration foreign CustomResourceDefinition foreigns.test.tulle]"
	})
	in.eventually("both named in the log", func() bool {
		text := in.log.String()
		return strings.Contains(text, `its label app.kubernetes.io/name is \"somebody\"`) && strings.Contains(text, "the control plane in namespace elsewhere converts it")
	})
	generations := []int64{mutating.Generation, validating.Generation, crd.Generation}
	if in.refresh(mutating, validating, crd); mutating.Generation != generations[0] || validating.Generation != generations[1] || crd.Generation != generations[2] {
		t.Error("something was written")
	}
}

func TestAChangeOfTheAuthorityIsToldToTheAPIServerBeforeItSigns(t *testing.T) {
	t.Parallel()
	in := install(t, "authority")
	mutating, _ := in.webhooks(in.options.App)
	in.create(mutating)
	replica, _ := in.run(nil)
	first := replica.CABundle()
	roots := func() int { return bytes.Count(replica.CABundle(), []byte("BEGIN CERTIFICATE")) }
	in.pass(replica, first, func() bool { return roots() == 2 })
	both := replica.CABundle()
	in.eventually("both roots in the webhook", func() bool {
		in.refresh(mutating)
		return bytes.Equal(mutating.Webhooks[0].ClientConfig.CABundle, both) && bytes.HasPrefix(both, first)
	})
	in.pass(replica, both, func() bool {
		_, err := in.shown(replica, first, in.options.Names[0])
		return err != nil
	})
	if shown, err := in.shown(replica, both, in.options.Names[0]); err != nil {
		t.Errorf("signed by the second root: %v, %v", shown, err)
	}
}

// pass lets time pass until something holds, in steps so short that no certificate expires where it is renewed in time. At every step a client that
// trusts bundle must be content.
func (in *installation) pass(replica *identity.Identity, bundle []byte, holds func() bool) {
	in.t.Helper()
	const day = 24 * time.Hour
	for range 400 {
		if holds() {
			return
		}
		in.clock.Advance(20 * day)
		in.eventually("a certificate that lasts", func() bool {
			shown, err := in.shown(replica, bundle, in.options.Names[0])
			if err != nil {
				in.t.Fatalf("at %v: %v", in.clock.Now(), err)
			}
			if shown.NotAfter.Sub(in.clock.Now()) >= 29*day {
				return true
			}
			in.clock.Advance(time.Hour) // the replica may just have looked at the clock before it was put forward
			return false
		})
	}
	in.t.Fatal("it did not come about in 21 years")
}

// somePEM is a certificate that the API server takes for a bundle.
func (in *installation) somePEM() []byte {
	in.t.Helper()
	other := *in
	other.options.Secret, other.options.Definitions, other.options.MutatingWebhooks, other.options.ValidatingWebhooks = "other", nil, nil, nil
	replica, stop := other.run(nil)
	defer stop()
	return replica.CABundle()
}
