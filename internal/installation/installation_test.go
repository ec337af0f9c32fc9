// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package installation_test

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/tulle-mesh/tulle/internal/clock"
	"github.com/tulle-mesh/tulle/internal/installation"
	"github.com/tulle-mesh/tulle/internal/kube"
)

// fault breaks a part of the installation. Each line that is wanted is one finding, in parts with an ellipsis between them; there must be no others.
type fault struct {
	harm func(k *lab)
	// later is how long after it is looked, and ending how long before the end of the certificate, where it is set.
	later, ending time.Duration
	want          []string
}

func faults() map[string]fault {
	all := map[string]fault{"nothing": {}}
	for _, some := range []map[string]fault{definitionFaults(), webhookFaults(), controllerFaults(), podFaults(), deletionFaults()} {
		maps.Copy(all, some)
	}
	return all
}

const meshes = "meshes.appmesh.k8s.aws"

func definitionFaults() map[string]fault {
	named := func(name string) *apiextensionsv1.CustomResourceDefinition {
		return &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	return map[string]fault{
		"a definition that is missing": {
			harm: func(k *lab) { k.remove(named("backendgroups.appmesh.k8s.aws")) },
			want: []string{"error NotInstalled CustomResourceDefinition backendgroups.appmesh.k8s.aws: the cluster does not know the kind BackendGroup…| tulle crds apply"},
		},
		"a definition of the original controller": {
			harm: func(k *lab) {
				change(k, named(meshes), func(d *apiextensionsv1.CustomResourceDefinition) {
					d.Spec.Conversion = nil
					for i := range d.Spec.Versions {
						d.Spec.Versions[i].Served = d.Spec.Versions[i].Name == "v1beta2"
					}
				})
			},
			want: []string{"error Outdated CustomResourceDefinition meshes.appmesh.k8s.aws: this definition does not serve v1beta1…| tulle crds apply"},
		},
		"a definition with other fields": {
			harm: func(k *lab) {
				change(k, named("gatewayroutes.appmesh.k8s.aws"), func(d *apiextensionsv1.CustomResourceDefinition) {
					d.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = "another"
				})
			},
			want: []string{"warning Outdated CustomResourceDefinition gatewayroutes.appmesh.k8s.aws: this definition is not the one that belongs to this program…| tulle crds apply"},
		},
		"objects that may be stored as they once were": {
			harm: func(k *lab) { stored(k, meshes, "v1beta1", "v1beta2") },
			want: []string{"warning LeftOver CustomResourceDefinition meshes.appmesh.k8s.aws: some objects of this kind may still be stored as v1beta1…| tulle crds apply --migrate"},
		},
		"objects that were stored in a version that nobody knows": {
			harm: func(k *lab) { stored(k, meshes, "v1alpha1", "v1beta2") },
			want: []string{"error LeftOver CustomResourceDefinition meshes.appmesh.k8s.aws: objects of this kind were once stored as v1alpha1…| tulle crds apply --migrate"},
		},
		"a conversion that converts nothing": {
			harm: func(k *lab) {
				change(k, named(meshes), func(d *apiextensionsv1.CustomResourceDefinition) { d.Spec.Conversion = nil })
			},
			want: []string{"error Outdated CustomResourceDefinition meshes.appmesh.k8s.aws: this definition converts nothing between v1beta1 and v1beta2…| tulle crds apply"},
		},
		"a conversion that nobody is to trust": {
			harm: func(k *lab) {
				change(k, named(meshes), func(d *apiextensionsv1.CustomResourceDefinition) {
					d.Spec.Conversion.Webhook.ClientConfig.CABundle = nil
				})
			},
			want: []string{"error Certificate CustomResourceDefinition meshes.appmesh.k8s.aws: the API server is not told which certificate to trust for the conversion…| …kubectl -n appmesh-system logs deploy/appmesh-controller"},
		},
		"a conversion by a Service that does not exist": {
			harm: func(k *lab) {
				change(k, named(meshes), func(d *apiextensionsv1.CustomResourceDefinition) {
					d.Spec.Conversion.Webhook.ClientConfig.Service.Namespace = "elsewhere"
				})
			},
			want: []string{"error Unreachable CustomResourceDefinition meshes.appmesh.k8s.aws: nobody answers for the conversion of this kind: the Service elsewhere/appmesh-controller-webhook-service, which is asked, does not exist…|…--system-namespace"},
		},
	}
}

func stored(k *lab, name string, versions ...string) {
	k.t.Helper()
	set := func(versions []string) {
		d := k.definition(name)
		d.Status.StoredVersions = versions
		if err := k.Status().Update(k.t.Context(), d); err != nil {
			k.t.Error(err)
		}
	}
	if versions[0] == "v1alpha1" {
		// The API server takes a version only while it is in the definition.
		change(k, k.definition(name), func(d *apiextensionsv1.CustomResourceDefinition) {
			old := *d.Spec.Versions[0].DeepCopy()
			old.Name, old.Storage, old.Served = "v1alpha1", false, false
			d.Spec.Versions = append(d.Spec.Versions, old)
		})
	}
	set(versions)
	k.t.Cleanup(func() {
		d := k.definition(name)
		d.Status.StoredVersions = []string{"v1beta2"}
		if err := k.Status().Update(context.Background(), d); err != nil {
			k.t.Error(err)
		}
	})
}

func webhookFaults() map[string]fault {
	mutating := func() *admissionregistrationv1.MutatingWebhookConfiguration {
		return &admissionregistrationv1.MutatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "appmesh-controller"}}
	}
	validating := func() *admissionregistrationv1.ValidatingWebhookConfiguration {
		return &admissionregistrationv1.ValidatingWebhookConfiguration{ObjectMeta: metav1.ObjectMeta{Name: "appmesh-controller"}}
	}
	nobody := func(at string) string {
		return "error Unreachable " + at + ": nobody is ready behind the Service appmesh-system/appmesh-controller-webhook-service…| kubectl -n appmesh-system get pods,endpointslices…"
	}
	return map[string]fault{
		"webhooks that put proxies into pods are missing": {
			harm: func(k *lab) { k.remove(mutating()) },
			want: []string{
				"error NotInstalled MutatingWebhookConfiguration appmesh-controller: …pods start without a proxy | helm upgrade -i appmesh-controller eks/appmesh-controller -n appmesh-system",
				"error NoSidecar Namespace shop: this namespace asks for proxies, and there is no webhook…| helm upgrade…kubectl -n shop rollout restart deployment",
			},
		},
		"webhooks that check objects are missing": {
			harm: func(k *lab) { k.remove(validating()) },
			want: []string{"error NotInstalled ValidatingWebhookConfiguration appmesh-controller: …| helm upgrade -i appmesh-controller…"},
		},
		"a webhook that nobody is to trust": {
			harm: func(k *lab) {
				change(k, mutating(), func(c *admissionregistrationv1.MutatingWebhookConfiguration) {
					c.Webhooks[0].ClientConfig.CABundle = nil
				})
			},
			want: []string{"error Certificate MutatingWebhookConfiguration appmesh-controller: the API server is not told which certificate to trust for these webhooks (no caBundle): objects and pods of meshed namespaces are refused | …"},
		},
		"a webhook that somebody else is trusted for": {
			harm: func(k *lab) {
				change(k, validating(), func(c *admissionregistrationv1.ValidatingWebhookConfiguration) {
					c.Webhooks[0].ClientConfig.CABundle = []byte(otherAuthority)
				})
			},
			want: []string{"error Certificate ValidatingWebhookConfiguration appmesh-controller: the API server is told to trust another certificate…Secret appmesh-controller-certs: x509:…| …rollout restart deploy/appmesh-controller"},
		},
		"nobody ready behind the Service of webhooks and conversion": {
			harm: func(k *lab) {
				slice := &discoveryv1.EndpointSlice{ObjectMeta: inside(system, "appmesh-controller-webhook-service-a")}
				change(k, slice, func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = new(false) })
			},
			want: []string{
				nobody("CustomResourceDefinition meshes.appmesh.k8s.aws"), nobody("CustomResourceDefinition virtualnodes.appmesh.k8s.aws"),
				nobody("CustomResourceDefinition virtualservices.appmesh.k8s.aws"), nobody("MutatingWebhookConfiguration appmesh-controller"),
				nobody("ValidatingWebhookConfiguration appmesh-controller"),
			},
		},
		"webhooks of the original controller": {
			harm: func(k *lab) {
				_, left := webhooks("appmesh-controller-validating-webhook-configuration", "appmesh-controller-webhook-service")
				k.add(left)
			},
			want: []string{"error LeftOver ValidatingWebhookConfiguration appmesh-controller-validating-webhook-configuration: this is the original App Mesh installation's (webhook vmesh.appmesh.k8s.aws)…|…kubectl delete validatingwebhookconfiguration appmesh-controller-validating-webhook-configuration"},
		},
		"the webhook of the original injector": {
			harm: func(k *lab) {
				left, _ := webhooks("appmesh-inject", "appmesh-inject")
				left.Webhooks = left.Webhooks[:1]
				left.Webhooks[0].Name, left.Webhooks[0].ClientConfig.Service.Path = "appmesh-inject.aws.amazon.com", nil
				k.add(left)
			},
			want: []string{
				"error LeftOver MutatingWebhookConfiguration appmesh-inject: this is the original…|…kubectl delete mutatingwebhookconfiguration appmesh-inject",
				"error Certificate Secret appmesh-system/appmesh-inject-certs: the control plane has no certificate…|…logs deploy/appmesh-inject",
			},
		},
		"webhooks of somebody else": {
			harm: func(k *lab) {
				other, _ := webhooks("someone", "someone")
				other.Webhooks = other.Webhooks[:1]
				other.Webhooks[0].Name = "pods.example.com"
				k.add(other)
			},
		},
	}
}

func controllerFaults() map[string]fault {
	secret := func() *corev1.Secret { return &corev1.Secret{ObjectMeta: inside(system, "appmesh-controller-certs")} }
	return map[string]fault{
		"no pod of the control plane": {
			harm: func(k *lab) { k.remove(pod(system, "appmesh-controller-0", nil)) },
			want: []string{"error NotRunning Deployment appmesh-system/appmesh-controller: no pod of the control plane is there…| kubectl -n appmesh-system describe deploy,replicaset…"},
		},
		"a control plane without replicas, and so nobody behind its Services": {
			harm: func(k *lab) {
				k.remove(pod(system, "appmesh-controller-0", nil))
				change(k, deployment(system, "appmesh-controller", ""), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(0)) })
				slice := &discoveryv1.EndpointSlice{ObjectMeta: inside(system, "appmesh-controller-webhook-service-a")}
				change(k, slice, func(s *discoveryv1.EndpointSlice) { s.Endpoints = nil })
			},
			want: []string{"error NotRunning Deployment appmesh-system/appmesh-controller: the control plane is scaled to 0 replicas…| kubectl -n appmesh-system scale deploy appmesh-controller --replicas=1"},
		},
		"no control plane": {
			harm: func(k *lab) {
				k.remove(pod(system, "appmesh-controller-0", nil))
				k.remove(deployment(system, "appmesh-controller", ""))
			},
			want: []string{"error NotRunning Namespace appmesh-system: no control plane is installed in this namespace…| helm upgrade -i appmesh-controller eks/appmesh-controller -n appmesh-system…--system-namespace"},
		},
		"a replica that is not ready": {
			harm: func(k *lab) {
				p := pod(system, "appmesh-controller-1", map[string]string{"app.kubernetes.io/name": "appmesh-controller"}, container("controller", "tulle:v1.20.0"))
				k.add(p)
				k.status(p, "10.0.0.8", false)
			},
			want: []string{"error NotRunning Pod appmesh-system/appmesh-controller-1: this replica of the control plane is not ready (ContainersNotReady) | kubectl -n appmesh-system describe pod appmesh-controller-1…"},
		},
		"nobody leads": {
			harm: func(k *lab) {
				change(k, &coordinationv1.Lease{ObjectMeta: inside(system, kube.LeaseName)}, func(l *coordinationv1.Lease) { l.Spec.RenewTime = at(-time.Hour) })
			},
			want: []string{"error NotRunning Lease appmesh-system/appmesh-controller-leader: no replica of the control plane leads…| kubectl -n appmesh-system logs…"},
		},
		"no certificate": {
			harm: func(k *lab) { k.remove(secret()) },
			want: []string{"error Certificate Secret appmesh-system/appmesh-controller-certs: the control plane has no certificate…| …logs deploy/appmesh-controller"},
		},
		"a certificate that is damaged": {
			harm: func(k *lab) { change(k, secret(), func(s *corev1.Secret) { s.Data["tls.crt"] = []byte("rubbish") }) },
			want: []string{"error Certificate Secret appmesh-system/appmesh-controller-certs: the control plane's certificate is damaged…| kubectl -n appmesh-system delete secret appmesh-controller-certs…"},
		},
		"a certificate that is over": {
			later: far - 24*time.Hour,
			want:  []string{"error Certificate Secret appmesh-system/appmesh-controller-certs: the control plane's certificate has ended on 20…| kubectl -n appmesh-system rollout restart deploy/appmesh-controller…"},
		},
		"a certificate that should have been renewed": {
			ending: 24 * time.Hour,
			want:   []string{"warning Certificate Secret appmesh-system/appmesh-controller-certs: the control plane's certificate ends on 20…| kubectl -n appmesh-system rollout restart deploy/appmesh-controller…"},
		},
		"the original controller beside it": {
			harm: func(k *lab) {
				k.add(deployment("plain", "appmesh-controller", "840364872350.dkr.ecr.us-west-2.amazonaws.com/amazon/appmesh-controller:v1.13.3"))
				k.add(&coordinationv1.Lease{ObjectMeta: inside("plain", "appmesh-controller-leader-election"), Spec: coordinationv1.LeaseSpec{RenewTime: at(0)}})
			},
			want: []string{
				"error TwoControllers Deployment plain/appmesh-controller: this is the original App Mesh controller…| …helm list -n plain…kubectl -n plain delete deploy appmesh-controller",
				"error TwoControllers Lease plain/appmesh-controller-leader-election: an original App Mesh controller renews this lease…|…",
			},
		},
		"what the original controller left, asleep": {
			harm: func(k *lab) {
				asleep := deployment("plain", "appmesh-controller", "amazon/appmesh-controller:v1.13.3")
				asleep.Spec.Replicas = new(int32(0))
				k.add(asleep)
				k.add(&coordinationv1.Lease{ObjectMeta: inside("plain", "appmesh-controller-leader-election"), Spec: coordinationv1.LeaseSpec{RenewTime: at(-time.Hour)}})
			},
		},
		"the original injector beside it": {
			harm: func(k *lab) {
				k.add(deployment("plain", "appmesh-inject", "602401143452.dkr.ecr.us-west-2.amazonaws.com/amazon/aws-app-mesh-inject:v0.5.0"))
			},
			want: []string{"error TwoControllers Deployment plain/appmesh-inject: this is App Mesh's original injector…"},
		},
		"a second control plane": {
			harm: func(k *lab) { k.add(deployment("plain", "appmesh-controller", "ghcr.io/tulle-mesh/tulle:v1.20.0")) },
			want: []string{"error TwoControllers Deployment plain/appmesh-controller: this is a second control plane beside the one in namespace appmesh-system…"},
		},
	}
}

// replicated gives a pod the owner that a Deployment's pods have.
func replicated(p *corev1.Pod, name string) *corev1.Pod {
	p.Labels = map[string]string{"pod-template-hash": "abc"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "ReplicaSet", Name: name + "-abc", UID: "u", Controller: new(true)}}
	return p
}

func podFaults() map[string]fault {
	running := func(k *lab, p *corev1.Pod, address string, ready bool) {
		k.t.Helper()
		k.add(p)
		k.status(p, address, ready)
	}
	agent := proxy("ghcr.io/tulle-mesh/tulle-agent:v1.20.0")
	return map[string]fault{
		"a label that means nothing": {
			harm: func(k *lab) {
				change(k, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "plain"}}, func(n *corev1.Namespace) { n.Labels[injection] = "true" })
			},
			want: []string{`warning Invalid Namespace plain: the label appmesh.k8s.aws/sidecarInjectorWebhook is "true", which means nothing…| kubectl label namespace plain --overwrite appmesh.k8s.aws/sidecarInjectorWebhook=enabled`},
		},
		"pods that the webhook refuses": {
			harm: func(k *lab) {
				for name, message := range map[string]string{
					"early": `admission webhook "mpod.appmesh.k8s.aws" denied the request: no VirtualNode takes a pod with its labels`,
					"other": `admission webhook "quota.example.com" denied the request: too many`,
				} {
					d := deployment(asking, name, "app:1")
					k.add(d)
					d.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Message: message}}
					if err := k.Status().Update(k.t.Context(), d); err != nil {
						k.t.Fatal(err)
					}
				}
			},
			want: []string{"error Refused Deployment shop/early: its pods are not made: no VirtualNode takes a pod with its labels…kubectl -n shop rollout restart deployment/early"},
		},
		"pods without a proxy": {
			harm: func(k *lab) {
				running(k, replicated(pod(asking, "api-abc-1", nil, container("api", "api:1")), "api"), "10.0.1.1", true)
				running(k, replicated(pod(asking, "api-abc-2", nil, container("api", "api:1")), "api"), "10.0.1.2", true)
				running(k, pod(asking, "alone", nil, container("api", "api:1")), "10.0.1.3", true)
				refuses := pod(asking, "refuses", nil, container("api", "api:1"))
				refuses.Annotations = map[string]string{injection: "disabled"}
				running(k, refuses, "10.0.1.4", true)
				onNode := pod(asking, "on-node", nil, container("api", "api:1"))
				onNode.Spec.HostNetwork = true
				running(k, onNode, "10.0.1.5", true)
				running(k, pod("plain", "elsewhere", nil, container("api", "api:1")), "10.0.1.6", true)
			},
			want: []string{
				"warning NoSidecar Deployment shop/api: 2 pods, such as api-abc-1, should have a proxy and has none…| kubectl -n shop rollout restart deployment/api",
				"warning NoSidecar Pod shop/alone: this pod should have a proxy and has none…| make the pod anew…",
			},
		},
		"proxies that are older than the control plane": {
			harm: func(k *lab) {
				running(k, replicated(pod(asking, "old-abc-1", nil, proxy("ghcr.io/tulle-mesh/tulle-agent:v1.19.9")), "old"), "10.0.0.1", true)
				running(k, replicated(pod(asking, "aws-abc-1", nil, proxy("840364872350.dkr.ecr.us-west-2.amazonaws.com/aws-appmesh-envoy:v1.34.13.3-prod")), "aws"), "10.0.0.1", true)
				running(k, replicated(pod(asking, "own-abc-1", nil, proxy("registry.example.com:5000/own@sha256:"+strings.Repeat("0", 64))), "own"), "10.0.0.1", true)
			},
			want: []string{
				"error Outdated Deployment shop/aws: pod aws-abc-1 has App Mesh's own proxy image…| kubectl -n shop rollout restart deployment/aws",
				"warning Outdated Deployment shop/old: pod old-abc-1 has a proxy of version v1.19.9, and the control plane is v1.20.0…| kubectl -n shop rollout restart deployment/old",
			},
		},
		"proxies that are not connected": {
			harm: func(k *lab) {
				native := pod(asking, "native-abc-1", nil, container("app", "app:1"))
				native.Spec.InitContainers = []corev1.Container{agent}
				running(k, replicated(native, "native"), "10.0.1.1", false)
				running(k, replicated(pod(asking, "lost-abc-1", nil, agent), "lost"), "10.0.1.2", true)
			},
			want: []string{
				"warning NotConnected Deployment shop/lost: pod lost-abc-1 has a proxy that is not connected to any replica now…| kubectl -n shop logs lost-abc-1 -c envoy…",
				"error NotConnected Deployment shop/native: pod native-abc-1 has a proxy that never got its configuration…| kubectl -n shop logs native-abc-1 -c envoy…",
			},
		},
		"replicas that do not say who is connected": {
			harm: func(k *lab) { k.askErr = errors.New("no") },
			want: []string{"warning NotChecked Namespace appmesh-system: the replicas do not say which proxies are connected: no |…"},
		},
		"a pod that waits for the original controller": {
			harm: func(k *lab) {
				p := pod("plain", "waits", nil, container("app", "app:1"))
				p.Spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "conditions.appmesh.k8s.aws/aws-cloudmap-healthy"}}
				running(k, p, "10.0.1.1", false)
			},
			want: []string{"error NeverReady Pod plain/waits: this pod cannot become ready…| make the pod anew…"},
		},
	}
}

// end is when the control plane's certificate ends.
func (k *lab) end() time.Time {
	k.t.Helper()
	secret := &corev1.Secret{}
	if err := k.Get(k.t.Context(), client.ObjectKey{Namespace: system, Name: "appmesh-controller-certs"}, secret); err != nil {
		k.t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(secret.Data["tls.crt"], secret.Data["tls.key"])
	if err != nil {
		k.t.Fatal(err)
	}
	return pair.Leaf.NotAfter
}

//nolint:paralleltest // each breaks the one installation that there is
func TestCheckSaysWhatIsWrongAndHowToMendIt(t *testing.T) {
	k := newLab(t)
	all := faults()
	for _, name := range names(all) {
		f := all[name]
		t.Run(name, func(t *testing.T) {
			broken := &lab{Client: k.Client, t: t, connected: k.connected}
			if f.harm != nil {
				f.harm(broken)
			}
			if f.ending > 0 {
				f.later = broken.end().Sub(clock.Real{}.Now()) - f.ending
			}
			got := broken.check(f.later)
			for _, want := range f.want {
				if !remove(&got, want) {
					t.Errorf("missing: %s", want)
				}
			}
			for _, line := range got {
				t.Errorf("not wanted: %s", line)
			}
		})
		if left := k.check(0); len(left) > 0 {
			t.Fatalf("after %q is mended there is left:\n%s", name, strings.Join(left, "\n"))
		}
	}
}

// remove takes the line with all parts of want, in order, out of a list.
func remove(lines *[]string, want string) bool {
	for i, line := range *lines {
		if matches(line, strings.Split(want, "…")) {
			*lines = append((*lines)[:i], (*lines)[i+1:]...)
			return true
		}
	}
	return false
}

func matches(line string, parts []string) bool {
	if !strings.HasPrefix(line, parts[0]) || !strings.HasSuffix(line, parts[len(parts)-1]) {
		return false
	}
	for _, part := range parts {
		_, after, found := strings.Cut(line, part)
		if !found {
			return false
		}
		line = after
	}
	return true
}

//nolint:paralleltest // see above
func TestCheckSaysWhatItMayNotRead(t *testing.T) {
	config := *server.Get(t).Config
	config.Impersonate.UserName = "nobody"
	found, err := installation.Check(t.Context(), installation.Options{Config: &config, System: system})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if f.Reason != installation.ReasonNotChecked {
			t.Errorf("found %+v", f)
		}
	}
	if len(found) < 7 {
		t.Errorf("%d things could not be read, want 7 at least: %+v", len(found), found)
	}
}
