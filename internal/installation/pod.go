// SPDX-License-Identifier: Apache-2.0
// Copyright The Tulle Authors

package installation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/version"

	"github.com/tulle-mesh/tulle/internal/mesh"
)

const (
	// sidecar is the proxy's container.
	sidecar = "envoy"
	// originalSidecar is the name of App Mesh's own image of it.
	originalSidecar = "aws-appmesh-envoy"
	// originalGate is what the original controller let pods wait for.
	originalGate corev1.PodConditionType = "conditions.appmesh.k8s.aws/aws-cloudmap-healthy"
)

// workload is what made a pod, and what is restarted to make it anew.
type workload struct{ namespace, kind, name string }

func workloadOf(p *corev1.Pod) workload {
	owner := metav1.GetControllerOf(p)
	if owner == nil {
		return workload{p.Namespace, "Pod", p.Name}
	}
	if hash := p.Labels["pod-template-hash"]; owner.Kind == "ReplicaSet" && hash != "" {
		if name, ok := strings.CutSuffix(owner.Name, "-"+hash); ok {
			return workload{p.Namespace, "Deployment", name}
		}
	}
	return workload{p.Namespace, owner.Kind, owner.Name}
}

// anew is the command that makes the workload's pods anew.
func (w workload) anew() string {
	switch w.kind {
	case "Deployment", "StatefulSet", "DaemonSet":
		return fmt.Sprintf("kubectl -n %s rollout restart %s/%s", w.namespace, strings.ToLower(w.kind), w.name)
	case "Pod":
		return fmt.Sprintf("make the pod anew: kubectl -n %s get pod %s -o yaml > pod.yaml; kubectl -n %s replace --force -f pod.yaml", w.namespace, w.name, w.namespace)
	default:
		return fmt.Sprintf("delete the pods of %s %s, so that they are made anew: kubectl -n %s get pods", w.kind, w.name, w.namespace)
	}
}

// trouble is what is wrong with some pods of a workload, which is said once for all of them.
type trouble struct {
	workload

	severity mesh.Severity
	reason   mesh.Reason
	text     string
	mend     string
}

// firstPod stands in a trouble's mend for the first of its pods.
const firstPod = "{pod}"

// troubles gathers what is wrong with pods.
type troubles struct {
	order []trouble
	pods  map[trouble][]string
}

func (t *troubles) add(p *corev1.Pod, severity mesh.Severity, reason mesh.Reason, text, mend string) {
	w := workloadOf(p)
	if mend == "" {
		mend = w.anew()
	}
	key := trouble{w, severity, reason, text, mend}
	if t.pods[key] == nil {
		t.order = append(t.order, key)
	}
	t.pods[key] = append(t.pods[key], p.Name)
}

// finding says how many pods it is about, and names one.
func (t *troubles) finding(key trouble) mesh.Finding {
	pods, whose := t.pods[key], "this pod"
	if key.kind != "Pod" {
		whose = fmt.Sprintf("pod %s", pods[0])
		if len(pods) > 1 {
			whose = fmt.Sprintf("%d pods, such as %s,", len(pods), pods[0])
		}
	}
	return mesh.Finding{
		Severity: key.severity, Reason: key.reason, Object: mesh.Source{Kind: key.kind, Namespace: key.namespace, Name: key.name},
		Message: whose + " " + key.text, Mend: strings.ReplaceAll(key.mend, firstPod, pods[0]),
	}
}

// checkPods looks at the pods of the mesh.
func (k *checkup) checkPods(ctx context.Context) error {
	labels := map[string]string{}
	for i := range k.namespaces {
		labels[k.namespaces[i].Name] = k.namespaces[i].Labels[injection]
	}
	connected, err := k.connected(ctx)
	if err != nil {
		return err
	}
	found := &troubles{pods: map[trouble][]string{}}
	tag := k.tag()
	for i := range k.pods {
		p := &k.pods[i]
		if finished(p) {
			continue
		}
		if waits(p) {
			found.add(p, mesh.SeverityError, ReasonNeverReady, fmt.Sprintf("cannot become ready: the original controller made it wait for the condition %s, which nobody sets any more", originalGate), "")
		}
		proxy := proxyOf(p)
		switch {
		case proxy != nil:
			k.checkProxy(found, p, proxy, tag)
			k.checkConnection(found, p, proxy, connected)
		case k.meshed(p, labels):
			found.add(p, mesh.SeverityWarning, ReasonNoSidecar,
				"should have a proxy and has none, so its traffic passes the mesh by: it is older than the installation or its namespace's label, was made while no webhook answered, or belongs to no virtual node", "")
		}
	}
	for _, key := range found.order {
		k.add(found.finding(key))
	}
	return nil
}

// waits says that the pod is not ready for want of the original controller.
func waits(p *corev1.Pod) bool {
	for _, gate := range p.Spec.ReadinessGates {
		if gate.ConditionType != originalGate {
			continue
		}
		for _, c := range p.Status.Conditions {
			if c.Type == originalGate && c.Status == corev1.ConditionTrue {
				return false
			}
		}
		return true
	}
	return false
}

// proxyOf is the proxy's container of a pod that stands for a virtual node; nil for none.
func proxyOf(p *corev1.Pod) *corev1.Container {
	for _, containers := range [][]corev1.Container{p.Spec.InitContainers, p.Spec.Containers} {
		for i := range containers {
			c := &containers[i]
			if c.Name != sidecar {
				continue
			}
			for _, env := range c.Env {
				if env.Name == "APPMESH_VIRTUAL_NODE_NAME" || env.Name == "APPMESH_RESOURCE_ARN" || env.Name == "APPMESH_RESOURCE_NAME" {
					return c
				}
			}
		}
	}
	return nil
}

func (k *checkup) checkProxy(found *troubles, p *corev1.Pod, proxy *corev1.Container, controller string) {
	name, tag := imageName(proxy.Image)
	if name == originalSidecar {
		found.add(p, mesh.SeverityError, ReasonOutdated, "has App Mesh's own proxy image, which asks AWS for its configuration and gets none", "")
		return
	}
	have, err := version.ParseGeneric(tag)
	want, wantErr := version.ParseGeneric(controller)
	if err == nil && wantErr == nil && have.LessThan(want) {
		found.add(p, mesh.SeverityWarning, ReasonOutdated, fmt.Sprintf("has a proxy of version %s, and the control plane is %s: it works, and lacks what came since", tag, controller), "")
	}
}

// connected asks for the addresses of proxies; nil where they are not known.
func (k *checkup) connected(ctx context.Context) (map[string]bool, error) {
	if k.Proxies == nil || len(k.replicas()) == 0 {
		return nil, nil //nolint:nilnil // not known is a value here
	}
	connected, err := k.Proxies(ctx)
	if err == nil {
		return connected, nil
	}
	if ctx.Err() != nil {
		return nil, err
	}
	k.odd(ReasonNotChecked, mesh.Source{Kind: "Namespace", Name: k.System}, "the replicas do not say which proxies are connected: "+err.Error(),
		"the right to get pods/proxy in that namespace is needed, and replicas that are ready")
	return nil, nil //nolint:nilnil // see above
}

func (k *checkup) checkConnection(found *troubles, p *corev1.Pod, proxy *corev1.Container, connected map[string]bool) {
	// A proxy connects from any of its pod's addresses.
	if connected == nil || len(p.Status.PodIPs) == 0 || !k.longAgo(p.Status.StartTime) ||
		slices.ContainsFunc(p.Status.PodIPs, func(ip corev1.PodIP) bool { return connected[ip.IP] }) {
		return
	}
	mend := fmt.Sprintf("kubectl -n %s logs %s -c %s says why; docs/kubernetes/troubleshooting.md explains the codes", p.Namespace, firstPod, proxy.Name)
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for i := range statuses {
			if statuses[i].Name == sidecar && statuses[i].Ready {
				found.add(p, mesh.SeverityWarning, ReasonNotConnected, "has a proxy that is not connected to any replica now: it goes on with the configuration that it has", mend)
				return
			}
		}
	}
	found.add(p, mesh.SeverityError, ReasonNotConnected, "has a proxy that never got its configuration, and waits for it", mend)
}
